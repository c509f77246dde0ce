// Learners leave as planned, whatever else is done for their job or has failed: others wait for
// their GPUs.
#include <algorithm>
#include <chrono>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/simulation/operator/sized_story.h"
#include "tests/simulation/operator/story_requests.h"

namespace pliant::operator_sim {
namespace {

using namespace std::chrono_literals;
using testing::Contains;
using testing::Not;

// Well below the back-off of a job whose pods are refused.
constexpr Duration kSoon = 10s;

class Leaving : public SizedStory {
 protected:
  bool LeavesSoon(const std::string& job) {
    return world.RunUntil([&] { return world.PodsOf(job, "learner").empty(); }, kSoon);
  }
  bool ShrinksSoon(const std::string& job, int learners) {
    return world.RunUntil([&] { return world.Learners(job) <= learners; }, kSoon);
  }
  // The job lacks a learner that the server refuses; its back-off has become long.
  void RestLong(const std::string& job) {
    world.refusal = "exceeded quota: pods";
    world.CrashALearner(job);
    ASSERT_TRUE(world.ReachEvent(job + ": RefusedByServer"));
    world.loop.RunFor(100s);
  }
};

TEST_F(Leaving, AJobWhosePodsAreRefusedIsSuspendedAtOnce) {
  Submit("one", 1, 4);
  ASSERT_TRUE(ReachLearners("one", 4));
  RestLong("one");
  world.Edit("one", {{"suspend", true}});
  EXPECT_TRUE(LeavesSoon("one")) << world.Describe();
  EXPECT_TRUE(world.RunUntil([&] { return world.Phase("one") == "Suspended"; }, kSoon))
      << "its status is written, too";
}

TEST_F(Leaving, AJobWhosePodsAreRefusedYieldsAtOnce) {
  Submit("one", 1, 8);
  ASSERT_TRUE(ReachLearners("one", 8));
  RestLong("one");
  world.server.refuse = nullptr;  // only for "one", which rests
  Submit("two", 4, 4);
  EXPECT_TRUE(ShrinksSoon("one", 4)) << world.Describe();
  EXPECT_TRUE(ReachLearners("two", 4));
}

TEST_F(Leaving, AJobWhosePodsAreCreatedSlowlyIsSuspendedAtOnce) {
  Submit("one", 1, 4);
  ASSERT_TRUE(ReachLearners("one", 4));
  world.webhooks_hang = true;
  world.Edit("one", {{"elastic", {{"maxLearners", 8}}}});
  world.loop.RunFor(5s);
  world.Edit("one", {{"suspend", true}});
  EXPECT_TRUE(LeavesSoon("one")) << world.Describe();
  world.webhooks_hang = false;
}

TEST_F(Leaving, AJobWithAWriteOfUnknownOutcomeIsSuspendedAtOnce) {
  Submit("one", 1, 4);
  ASSERT_TRUE(ReachLearners("one", 4));
  world.interfere = AnswerWith(500, [](const kube::HttpRequest& request) {
    const bool asks = request.method == kube::HttpMethod::kGet &&
                      request.target.find("/pods/") != std::string::npos;
    return asks || MakesLearner(request);
  });
  world.CrashALearner("one");
  world.loop.RunFor(60s);
  world.Edit("one", {{"suspend", true}});
  EXPECT_TRUE(LeavesSoon("one")) << world.Describe();
  world.interfere = nullptr;
}

TEST_F(Leaving, WhileAJobRestsNoTermIsUsedUp) {
  Submit("one", 1, 4);
  ASSERT_TRUE(ReachLearners("one", 4));
  RestLong("one");
  world.RemovePods("one", "coordinator");
  world.loop.RunFor(5min);
  EXPECT_LE(world.Term("one"), 5) << "each is of a coordinator that was asked for";
  world.refusal.clear();
  EXPECT_TRUE(ReachLearners("one", 4, 10min)) << world.Describe();
}

TEST_F(Leaving, GpusMoveWithinAFullQuotaWithoutARefusal) {
  world.SetQuota(8);
  Submit("one", 1, 8);
  ASSERT_TRUE(ReachLearners("one", 8));
  Submit("two", 1, 8);
  ASSERT_TRUE(world.ReachSizes({{"one", 4}, {"two", 4}})) << world.Describe();
  world.Edit("two", {{"priority", 10'000}});
  ASSERT_TRUE(world.ReachSizes({{"one", 3}, {"two", 5}})) << world.Describe();
  for (const char* job : {"one", "two"}) {
    EXPECT_THAT(world.events, Not(Contains(std::string(job) + ": RefusedByServer")));
  }
}

// The server's quota controller counts a pod for a moment after its end.
TEST_F(Leaving, AQuotaThatIsCountedLateIsNoRefusal) {
  world.SetQuota(8);
  world.server.quota_lag = 3s;
  Submit("one", 1, 8);
  ASSERT_TRUE(ReachLearners("one", 8));
  Submit("two", 1, 8);
  ASSERT_TRUE(world.ReachSizes({{"one", 4}, {"two", 4}})) << world.Describe();
  EXPECT_THAT(world.events, Not(Contains("two: RefusedByServer")));
}

}  // namespace
}  // namespace pliant::operator_sim
