#include "trainer/collective/frame_format.h"

#include <cstdint>
#include <span>
#include <vector>

#include <gtest/gtest.h>

namespace pliant {
namespace {

const FrameHeadFields kFields{.header = {.kind = FrameKind::kNode,
                                         .membership = {.term = 0x0102030405060708, .counter = 9},
                                         .tick = 77,
                                         .bucket = 3,
                                         .node = 12,
                                         .piece = 4},
                              .payload_bytes = 4096,
                              .payload_crc = 0xdeadbeef};

TEST(FrameHead, ComesBackAsItWasWritten) {
  const auto decoded = DecodeFrameHead(EncodeFrameHead(kFields));
  ASSERT_TRUE(decoded) << decoded.error();
  EXPECT_EQ(*decoded, kFields);
}

// Learners of different versions share connections, so the layout must not change.
TEST(FrameHead, HasItsFieldsAtFixedPlaces) {
  const FrameHead head = EncodeFrameHead(kFields);
  const auto at = [&](std::size_t offset) { return std::to_integer<int>(head[offset]); };
  EXPECT_EQ(at(0), 'P');
  EXPECT_EQ(at(3), '1');
  EXPECT_EQ(at(4), 4);
  EXPECT_EQ(at(8), 8) << "little-endian";
  EXPECT_EQ(at(15), 1);
  EXPECT_EQ(at(16), 9);
  EXPECT_EQ(at(24), 77);
  EXPECT_EQ(at(32), 3);
  EXPECT_EQ(at(36), 12);
  EXPECT_EQ(at(40), 4);
  EXPECT_EQ(at(49), 0x10);
  EXPECT_EQ(at(56), 0xef);
}

TEST(FrameHead, AnyFlippedBitIsSeen) {
  const FrameHead good = EncodeFrameHead(kFields);
  for (std::size_t bit = 0; bit < 8 * kFrameHeadBytes; ++bit) {
    FrameHead bad = good;
    bad[bit / 8] ^= static_cast<std::byte>(1 << bit % 8);
    const auto decoded = DecodeFrameHead(bad);
    ASSERT_FALSE(decoded) << "bit " << bit;
    EXPECT_EQ(decoded.error().code, ErrorCode::kCorrupt);
  }
}

TEST(FrameHead, AKindThatIsNotKnownIsRefused) {
  FrameHeadFields fields = kFields;
  fields.header.kind = static_cast<FrameKind>(200);
  EXPECT_FALSE(DecodeFrameHead(EncodeFrameHead(fields)));
}

const PeerHello kHello{.from = {.name = "a-1", .pod_uid = "", .nonce = UINT64_MAX},
                       .to = {.name = "", .pod_uid = "uid", .nonce = 0}};

TEST(PeerHello, ComesBackAsItWasWritten) {
  const auto decoded = DecodeHello(EncodeHello(kHello));
  ASSERT_TRUE(decoded) << decoded.error();
  EXPECT_EQ(*decoded, kHello);
}

TEST(PeerHello, IsTakenOnlyWhole) {
  const std::vector<std::byte> good = EncodeHello(kHello);
  for (std::size_t size = 0; size < good.size(); ++size)
    EXPECT_FALSE(DecodeHello(std::span(good).first(size))) << size;
  std::vector<std::byte> longer = good;
  longer.push_back(std::byte{0});
  EXPECT_FALSE(DecodeHello(longer));
  std::vector<std::byte> huge = good;
  for (std::size_t i = 4; i < 8; ++i) huge[i] = std::byte{0xff};  // a name of 4 GiB
  EXPECT_FALSE(DecodeHello(huge));
}

TEST(PeerHello, NamesTheProtocolThatDiffers) {
  PeerHello hello = kHello;
  hello.protocol = 2;
  const auto decoded = DecodeHello(EncodeHello(hello));
  ASSERT_FALSE(decoded);
  EXPECT_EQ(decoded.error().message, "the peer speaks protocol 2, this learner 1");
}

}  // namespace
}  // namespace pliant
