#include "trainer/collective/descriptor_stream.h"

#include <algorithm>
#include <array>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

namespace pliant {
namespace {

using testing::HasSubstr;

class DescriptorStreamTest : public testing::Test {
 protected:
  DescriptorStreamTest() {
    EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sockets_.data()), 0);
    a_.emplace(sockets_[0]);
    b_.emplace(sockets_[1]);
  }
  ~DescriptorStreamTest() override {
    for (const int socket : sockets_) ::close(socket);
  }

  static std::vector<std::byte> Text(std::size_t size, int first = 0) {
    std::vector<std::byte> bytes(size);
    for (std::size_t i = 0; i < size; ++i)
      bytes[i] = static_cast<std::byte>(static_cast<std::size_t>(first) + i);
    return bytes;
  }
  // Maps the next received descriptor to `b_`; nullptr: there is none.
  std::shared_ptr<const MappedBlock> NextBlock(std::uint64_t bytes) {
    const std::optional<int> descriptor = b_->TakeDescriptor();
    if (!descriptor) return nullptr;
    auto mapped = MappedBlock::Map(*descriptor, bytes);
    ::close(*descriptor);
    return mapped ? *mapped : nullptr;
  }

  std::array<int, 2> sockets_{};
  std::optional<DescriptorStream> a_;
  std::optional<DescriptorStream> b_;
};

TEST_F(DescriptorStreamTest, BytesStayUntilTheyAreConsumed) {
  a_->Put(Text(10));
  EXPECT_EQ(a_->queued_bytes(), 10U);
  ASSERT_EQ(a_->Write().state, IoState::kReady);
  EXPECT_EQ(a_->queued_bytes(), 0U);
  ASSERT_EQ(b_->Read().state, IoState::kReady);
  EXPECT_EQ(b_->received().size(), 10U);
  b_->Consume(4);
  EXPECT_EQ(b_->received().front(), std::byte{4});
  EXPECT_EQ(b_->Read().state, IoState::kWantRead);
  a_->Put(Text(5, 10));
  ASSERT_EQ(a_->Write().state, IoState::kReady);
  ASSERT_EQ(b_->Read().state, IoState::kReady);
  EXPECT_TRUE(std::ranges::equal(b_->received(), Text(11, 4)));
}

TEST_F(DescriptorStreamTest, DescriptorsComeInOrder) {
  const std::size_t sizes[] = {4096, 8192, 12288};
  std::uint64_t id = 0;
  for (const std::size_t size : sizes) {
    a_->PutDescriptor(*SharedBlock::Make(++id, size));
    a_->Put(Text(1));
  }
  ASSERT_EQ(a_->Write().state, IoState::kReady);
  while (b_->Read().state == IoState::kReady) continue;
  for (const std::size_t size : sizes) {
    const auto block = NextBlock(size);
    ASSERT_NE(block, nullptr);
    EXPECT_EQ(block->view().size(), size);
  }
  EXPECT_EQ(NextBlock(1), nullptr);
}

TEST_F(DescriptorStreamTest, NoByteComesBeforeItsDescriptor) {
  for (int i = 0; i < 3; ++i) {
    a_->Put(Text(100));
    a_->PutDescriptor(*SharedBlock::Make(1, 4096));
    a_->Put(Text(1));
  }
  ASSERT_EQ(a_->Write().state, IoState::kReady);
  std::size_t bytes = 0;
  std::size_t blocks = 0;
  while (b_->Read().state == IoState::kReady) {
    bytes += b_->received().size();
    b_->Consume(b_->received().size());
    while (NextBlock(4096) != nullptr) ++blocks;
    EXPECT_GE(blocks, bytes / 101) << "of " << bytes << " bytes every 101st carries a descriptor";
  }
  EXPECT_EQ(bytes, 303U);
  EXPECT_EQ(blocks, 3U);
}

TEST_F(DescriptorStreamTest, WritesTheRestLaterIfTheSocketIsFull) {
  constexpr std::size_t kMuch = std::size_t{4} << 20;
  const std::vector<std::byte> text = Text(kMuch);
  a_->Put(text);
  a_->PutDescriptor(*SharedBlock::Make(1, 4096));
  a_->Put(Text(1));
  ASSERT_EQ(a_->Write().state, IoState::kWantWrite);
  std::vector<std::byte> got;
  while (got.size() < kMuch + 1) {
    const IoResult read = b_->Read();
    if (read.state == IoState::kWantRead) {
      const IoState state = a_->Write().state;
      ASSERT_TRUE(state == IoState::kReady || state == IoState::kWantWrite);
      continue;
    }
    ASSERT_EQ(read.state, IoState::kReady);
    got.insert(got.end(), b_->received().begin(), b_->received().end());
    b_->Consume(b_->received().size());
  }
  EXPECT_TRUE(std::ranges::equal(std::span(got).first(kMuch), text));
  EXPECT_NE(NextBlock(4096), nullptr);
}

TEST_F(DescriptorStreamTest, DescriptorsThatNobodyTakesAreAnError) {
  const auto block = *SharedBlock::Make(1, 4096);
  for (int i = 0; i < 17; ++i) {
    a_->PutDescriptor(block);
    a_->Put(Text(1));
  }
  ASSERT_EQ(a_->Write().state, IoState::kReady);
  IoResult read;
  int reads = 0;
  do {
    read = b_->Read();
    ++reads;
  } while (read.state == IoState::kReady);
  EXPECT_EQ(reads, 17);
  EXPECT_EQ(read.state, IoState::kClosed);
  EXPECT_THAT(read.reason, HasSubstr("more descriptors"));
}

TEST_F(DescriptorStreamTest, ThePeersEndIsTheEnd) {
  ASSERT_EQ(::shutdown(sockets_[0], SHUT_RDWR), 0);
  const IoResult read = b_->Read();
  EXPECT_EQ(read.state, IoState::kClosed);
  EXPECT_THAT(read.reason, HasSubstr("closed the connection"));
  b_->Put(Text(1));
  EXPECT_EQ(b_->Write().state, IoState::kClosed);
}

TEST_F(DescriptorStreamTest, DroppedBlocksAreLetGo) {
  auto block = *SharedBlock::Make(1, 4096);
  const std::weak_ptr<const SharedBlock> kept = block;
  a_->PutDescriptor(std::move(block));
  EXPECT_FALSE(kept.expired());
  a_->DropBlocks();
  EXPECT_TRUE(kept.expired());
}

}  // namespace
}  // namespace pliant
