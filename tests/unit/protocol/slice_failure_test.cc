#include "trainer/protocol/slice_failure.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include <gtest/gtest.h>

#include "trainer/protocol/wire.h"

namespace pliant {
namespace {

TEST(SliceFailure, TravelsInAFrame) {
  for (int code = 0; code <= static_cast<int>(ErrorCode::kInternal); ++code) {
    const SliceFailure failure{.tick = 77,
                               .error = {static_cast<ErrorCode>(code), "write x: No space left"}};
    const Frame frame = EncodeSliceFailure({2, 3}, failure);
    EXPECT_EQ(frame.header.kind, FrameKind::kSliceFailed);
    EXPECT_EQ(frame.header.membership, (MembershipId{2, 3}));
    const SliceFailure back = DecodeSliceFailure(frame);
    EXPECT_EQ(back.tick, failure.tick);
    EXPECT_EQ(back.error, failure.error);
  }
}

TEST(SliceFailure, AnErrorThatIsTooLongKeepsItsEnd) {
  const std::string end = ": No space left on device";
  for (const std::size_t size :
       {std::size_t{1023}, std::size_t{1024}, std::size_t{1025}, std::size_t{100'000}}) {
    SCOPED_TRACE(size);
    const std::string message = std::string(size - end.size(), 'x') + end;
    const Frame frame = EncodeSliceFailure({1, 1}, {.tick = 1, .error = {{}, message}});
    const std::string kept = DecodeSliceFailure(frame).error.message;
    EXPECT_EQ(kept.size(), std::min<std::size_t>(size, 1024));
    EXPECT_TRUE(message.ends_with(kept));
  }
}

TEST(SliceFailure, ACodeOfAnotherVersionIsAnErrorThatIsTriedAgain) {
  Frame frame = EncodeSliceFailure({1, 1}, {.tick = 1, .error = {ErrorCode::kInternal, "e"}});
  for (const std::uint32_t code : {frame.header.node + 1, 0xFFFF'FFFFU}) {
    frame.header.node = code;
    EXPECT_EQ(DecodeSliceFailure(frame).error, (Error{ErrorCode::kUnavailable, "e"}));
  }
}

TEST(SliceFailure, WithoutAWordIsStillOne) {
  const Frame frame{.header = {.kind = FrameKind::kSliceFailed, .tick = 5}, .payload = {}};
  EXPECT_EQ(DecodeSliceFailure(frame).tick, 5U);
  EXPECT_EQ(DecodeSliceFailure(frame).error.message, "");
}

TEST(TextPayload, KeepsItsTextAlive) {
  Bytes payload;
  {
    const std::string text("a\0b, and too long for the string itself to hold", 46);
    payload = TextPayload(text);
  }
  EXPECT_EQ(TextOfPayload(payload),
            std::string_view("a\0b, and too long for the string itself to hold", 46));
  EXPECT_EQ(TextOfPayload(TextPayload("")), "");
  EXPECT_EQ(TextOfPayload({}), "") << "a frame without a payload";
}

}  // namespace
}  // namespace pliant
