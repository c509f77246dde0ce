#include "trainer/protocol/state_transfer.h"

#include <algorithm>
#include <cstring>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "tests/unit/protocol/state_frames.h"
#include "trainer/checkpoint/state_slice.h"

namespace pliant {
namespace {

// Tensors of several sizes, including empty ones and one that spans several slices.
struct State {
  explicit State(std::byte fill) : big(2 * kStatePieceBytes + 4, fill), small(12, fill) {}
  StateDict dict() {
    return {
        {.name = "model.empty", .shape = {0}, .bytes = {}},
        {.name = "model.big", .shape = {static_cast<std::int64_t>(big.size() / 4)}, .bytes = big},
        {.name = "optimizer.small", .shape = {3}, .bytes = small},
        {.name = "optimizer.none", .shape = {0}, .bytes = {}}};
  }
  std::vector<std::byte> big;
  std::vector<std::byte> small;
};

std::vector<Frame> FramesOf(State& state) {
  return StateFrames({1, 2}, 77, std::make_shared<const StateCopy>(StateCopy::Of(state.dict())));
}

TEST(StateTransfer, ArrivesAsItWasSent) {
  State sent(std::byte{7});
  sent.big[5] = std::byte{9};
  const std::vector<Frame> frames = FramesOf(sent);
  ASSERT_EQ(frames.size(), 5U) << "three pieces of the big tensor, one of the small one, the end";
  State received(std::byte{0});
  StateReceiver receiver(received.dict());
  for (const Frame& frame : frames) {
    EXPECT_FALSE(receiver.done());
    ASSERT_TRUE(receiver.OnFrame(frame));
  }
  ASSERT_TRUE(receiver.done());
  EXPECT_EQ(receiver.applied_ticks(), 77U);
  EXPECT_EQ(received.big, sent.big);
  EXPECT_EQ(received.small, sent.small);
}

// Each batch ends with a frame that marks its end, except the last, which ends the state.
TEST(StateTransfer, WaitsBetweenBatchesToBeAskedForMore) {
  for (const std::size_t batch : {kStatePieceBytes / 2, kStatePieceBytes, 2 * kStatePieceBytes,
                                  2 * kStatePieceBytes + 4, 10 * kStatePieceBytes}) {
    SCOPED_TRACE(batch);
    State sent(std::byte{7});
    State received(std::byte{0});
    StateSender sender({1, 2}, 77, std::make_shared<const StateCopy>(StateCopy::Of(sent.dict())));
    StateReceiver receiver(received.dict());
    int batches = 0;
    for (bool more = true; more; ++batches) {
      std::size_t bytes = 0;
      more = false;
      sender.SendBatch(batch, [&](const Frame& frame) {
        EXPECT_FALSE(more) << "nothing comes after the last of a batch";
        bytes += frame.payload.view.size();
        more = (frame.header.node & kLastOfBatch) != 0;
        ASSERT_TRUE(receiver.OnFrame(frame));
      });
      EXPECT_LE(bytes, batch);
      EXPECT_EQ(more, !sender.done());
      ASSERT_LT(batches, 20);
    }
    EXPECT_TRUE(receiver.done());
    EXPECT_EQ(received.big, sent.big);
    EXPECT_EQ(received.small, sent.small);
  }
}

TEST(StateTransfer, ComesInSlicesOfSeveral) {
  State sent(std::byte{7});
  const std::vector<int> sources = {0, 2, 3};
  State shape(std::byte{0});
  SlicedStateReceiver receiver(shape.dict(), sources);
  for (int index = 0; index < 3; ++index) {
    EXPECT_FALSE(receiver.done());
    const StateDict slice = SliceOf(sent.dict(), {.index = index, .count = 3});
    for (const Frame& frame :
         StateFrames({1, 2}, 77, std::make_shared<const StateCopy>(StateCopy::Of(slice)))) {
      ASSERT_TRUE(receiver.OnFrame(sources[static_cast<std::size_t>(index)], frame));
      EXPECT_FALSE(receiver.OnFrame(1, frame)) << "rank 1 has no slice";
    }
  }
  ASSERT_TRUE(receiver.done());
  State received(std::byte{0});
  ASSERT_TRUE(CopyState(receiver.Take()->view(), received.dict()));
  EXPECT_EQ(received.big, sent.big);
  EXPECT_EQ(received.small, sent.small);
}

TEST(StateTransfer, RefusesWhatDoesNotFit) {
  State sent(std::byte{7});
  const std::vector<Frame> frames = FramesOf(sent);
  State shape(std::byte{0});
  for (std::size_t missing = 0; missing < frames.size() - 1; ++missing) {
    StateReceiver receiver(shape.dict());
    bool refused = false;
    for (std::size_t i = 0; i < frames.size() && !refused; ++i) {
      if (i != missing) refused = !receiver.OnFrame(frames[i]);
    }
    EXPECT_TRUE(refused || !receiver.done()) << "without frame " << missing;
  }
  StateReceiver receiver(shape.dict());
  for (const Frame& frame : frames) ASSERT_TRUE(receiver.OnFrame(frame));
  EXPECT_FALSE(receiver.OnFrame(frames.back())) << "after the end";
}

}  // namespace
}  // namespace pliant
