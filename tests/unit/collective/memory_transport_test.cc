// Faults that only a network in memory can produce on demand.
#include "trainer/collective/memory_transport.h"

#include <chrono>
#include <memory>

#include <gtest/gtest.h>

#include "base/sim_event_loop.h"
#include "tests/unit/collective/transport_world.h"

namespace pliant {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

class SteadyWorld final : public TransportWorld {
 public:
  std::unique_ptr<PeerTransport> NewTransport(const LearnerId& self) override {
    return network.NewTransport(self);
  }
  EventLoop& loop() override { return sim; }
  bool RunUntil(const std::function<bool()>& done) override {
    return sim.RunUntilTrue(done, seconds(10));
  }
  void RunFor(Duration duration) override { sim.RunFor(duration); }

  SimEventLoop sim;
  MemoryNetwork network{sim, [](const LearnerId&, const LearnerId&) { return milliseconds(1); }};
};

class MemoryNetworkTest : public testing::Test {
 protected:
  void Join() {
    a_.Connect(b_);
    b_.Connect(a_);
    ASSERT_TRUE(world_.RunUntil([&] { return a_.ConnectedTo(b_) && b_.ConnectedTo(a_); }));
  }

  SteadyWorld world_;
  Recorder a_{world_, Learner(1)};
  Recorder b_{world_, Learner(2)};
};

TEST_F(MemoryNetworkTest, ACutLosesWhatIsUnderWayAndTellsBoth) {
  Join();
  a_.transport->Send(b_.id, FrameOfTick(1));
  world_.network.Cut(a_.id, b_.id);
  world_.RunFor(seconds(1));
  EXPECT_TRUE(b_.frames.empty());
  EXPECT_EQ(a_.lost.size(), 1U);
  EXPECT_EQ(b_.lost.size(), 1U);

  a_.Connect(b_);
  b_.Connect(a_);
  world_.RunFor(seconds(1));
  EXPECT_FALSE(a_.ConnectedTo(b_));
  world_.network.Mend(a_.id, b_.id);
  world_.RunFor(seconds(1));
  EXPECT_TRUE(a_.ConnectedTo(b_));
  EXPECT_TRUE(b_.ConnectedTo(a_));
}

TEST_F(MemoryNetworkTest, ACutThatIsRepairedAtOnceStillBreaksTheConnection) {
  Join();
  world_.network.Cut(a_.id, b_.id);
  world_.network.Mend(a_.id, b_.id);
  a_.transport->Send(b_.id, FrameOfTick(1));
  world_.RunFor(seconds(1));
  EXPECT_TRUE(b_.frames.empty());
  EXPECT_EQ(a_.lost.size(), 1U);
  EXPECT_EQ(b_.lost.size(), 1U);
}

TEST_F(MemoryNetworkTest, ASilentLinkReportsNothingUntilItIsRepaired) {
  Join();
  world_.network.Silence(a_.id, b_.id);
  a_.transport->Send(b_.id, FrameOfTick(1));
  world_.RunFor(seconds(5));
  EXPECT_TRUE(b_.frames.empty());
  EXPECT_TRUE(a_.lost.empty());
  EXPECT_TRUE(a_.ConnectedTo(b_));
  world_.network.Mend(a_.id, b_.id);
  world_.RunFor(seconds(1));
  EXPECT_EQ(a_.lost.size(), 1U);
  EXPECT_EQ(b_.lost.size(), 1U);
  EXPECT_TRUE(b_.frames.empty());
}

TEST_F(MemoryNetworkTest, AMachineThatVanishesSaysNothing) {
  Join();
  world_.network.Vanish(b_.id);
  a_.transport->Send(b_.id, FrameOfTick(1));
  b_.transport->Send(a_.id, FrameOfTick(2));
  world_.RunFor(seconds(5));
  b_.transport.reset();
  world_.RunFor(seconds(5));
  EXPECT_TRUE(a_.frames.empty());
  EXPECT_TRUE(b_.frames.empty());
  EXPECT_TRUE(a_.lost.empty());
}

TEST_F(MemoryNetworkTest, AHalfOpenConnectionGivesWayToTheNextDial) {
  Join();
  // `a_` does not receive the close by `b_`: it keeps a half-open connection.
  world_.network.Silence(a_.id, b_.id);
  b_.transport->Disconnect(a_.id);
  world_.RunFor(seconds(1));
  EXPECT_TRUE(a_.ConnectedTo(b_));
  b_.Connect(a_);
  world_.network.Mend(a_.id, b_.id);
  world_.RunFor(seconds(1));
  EXPECT_EQ(a_.lost.size(), 1U);
  a_.Connect(b_);
  ASSERT_TRUE(world_.RunUntil([&] { return a_.ConnectedTo(b_) && b_.ConnectedTo(a_); }));
  EXPECT_TRUE(b_.lost.empty());
}

}  // namespace
}  // namespace pliant
