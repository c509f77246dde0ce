#include "trainer/runtime/state_transfer.h"

#include <cstring>
#include <vector>

#include <gtest/gtest.h>

namespace pliant {
namespace {

// Tensors of some sizes, empty ones among them and one of several slices.
struct State {
  explicit State(std::byte fill) : big(2 * kStateSliceBytes + 4, fill), small(12, fill) {}
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
  std::vector<Frame> frames;
  SendState({1, 2}, 77, std::make_shared<const StateCopy>(StateCopy::Of(state.dict())),
            [&](Frame frame) { frames.push_back(std::move(frame)); });
  return frames;
}

TEST(StateTransfer, ArrivesAsItWasSent) {
  State sent(std::byte{7});
  sent.big[5] = std::byte{9};
  const std::vector<Frame> frames = FramesOf(sent);
  ASSERT_EQ(frames.size(), 5U) << "three slices of the big tensor, one of the small one, the end";
  State shape(std::byte{0});
  StateReceiver receiver(shape.dict());
  for (const Frame& frame : frames) {
    EXPECT_FALSE(receiver.done());
    ASSERT_TRUE(receiver.OnFrame(frame));
  }
  ASSERT_TRUE(receiver.done());
  EXPECT_EQ(receiver.applied_ticks(), 77U);
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
