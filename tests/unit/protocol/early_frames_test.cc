#include "trainer/protocol/early_frames.h"

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

namespace pliant {
namespace {

std::shared_ptr<const LearnerId> Peer(const std::string& name) {
  return std::make_shared<const LearnerId>(LearnerId{.name = name, .pod_uid = "uid"});
}

// The payload is never read.
Frame FrameOf(Tick tick, std::size_t bytes) {
  const std::byte* const nowhere = nullptr;
  return {.header = {.kind = FrameKind::kRoot, .membership = {}, .tick = tick},
          .payload = {.owner = nullptr, .view = std::span(nowhere, bytes)}};
}

std::vector<Tick> TicksOf(const std::vector<EarlyFrames::Held>& held) {
  std::vector<Tick> ticks;
  for (const EarlyFrames::Held& each : held) ticks.push_back(each.frame.header.tick);
  return ticks;
}

constexpr std::size_t kHead = EarlyFrames::kFrameBytes;

TEST(EarlyFrames, HoldsSoMuchOfEachPeer) {
  EarlyFrames held({.openings = 2 * (kHead + 100), .ticks = 3 * (kHead + 100)});
  const auto one = Peer("one");
  const auto other = Peer("other");
  EXPECT_TRUE(held.Hold(one, FrameOf(1, 100), true));
  EXPECT_TRUE(held.Hold(one, FrameOf(2, 100), true));
  EXPECT_TRUE(held.Hold(other, FrameOf(3, 200), true)) << "each peer has its own limit";
  EXPECT_TRUE(held.Hold(one, FrameOf(4, 300), false)) << "ticks have a limit of their own";
  EXPECT_EQ(TicksOf(held.frames()), (std::vector<Tick>{1, 2, 3, 4}));
  EXPECT_FALSE(held.Hold(one, FrameOf(5, 0), true)) << "frames without payloads count, too";
  EXPECT_EQ(TicksOf(held.frames()), (std::vector<Tick>{3}))
      << "all frames of that peer are dropped";
  EXPECT_TRUE(held.Hold(one, FrameOf(6, 200), true)) << "its count starts at 0 again";
}

TEST(EarlyFrames, TakenFramesNoLongerCount) {
  EarlyFrames held({.openings = 0, .ticks = kHead + 100});
  const auto peer = Peer("one");
  for (Tick tick = 0; tick < 5; ++tick) {
    EXPECT_TRUE(held.Hold(peer, FrameOf(tick, 100), false));
    EXPECT_EQ(TicksOf(held.TakeAll()), (std::vector<Tick>{tick}));
    EXPECT_TRUE(held.frames().empty());
  }
  EXPECT_FALSE(held.Hold(peer, FrameOf(5, 0), true));
}

// The limits allow everything that a correct peer may have sent early.
TEST(EarlyFrames, TheLimitsLeaveRoomForWhoRunsAhead) {
  constexpr std::size_t kBatch = std::size_t{4} << 20;
  const SizesOfJob job{.gradient_bytes = 400'000'000,
                       .buffer_bytes = 100'000,
                       .logical_shards = 32,
                       .ticks_ahead = 4,
                       .state_batch_bytes = kBatch};
  const EarlyFrames::Limits limits = LimitsFor(job);
  EXPECT_GT(limits.openings, 2 * 2 * kBatch) << "two batches, each with a piece more than it asks";
  EXPECT_LT(limits.openings, std::size_t{256} << 20) << "whatever the size of the gradient";
  const std::size_t to_one_behind = (job.ticks_ahead + 2) * (job.gradient_bytes + job.buffer_bytes);
  EXPECT_GT(limits.ticks, to_one_behind);
  const std::size_t half_of_each_leaf = job.logical_shards * job.gradient_bytes / 2;
  EXPECT_GT(limits.ticks, half_of_each_leaf + job.gradient_bytes);
  EXPECT_LT(limits.ticks, 40 * job.gradient_bytes);
}

}  // namespace
}  // namespace pliant
