#include "operator/controller/coordinators/coordinator_monitor.h"

#include <functional>
#include <set>
#include <utility>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/sim_event_loop.h"
#include "tests/unit/controller/job_fixture.h"
#include "tests/unit/controller/slow_calls.h"

namespace pliant::controller {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::ElementsAre;

class FakeCoordinator final : public CoordinatorClient {
 public:
  Result<Progress> PutPlan(const CoordinatorAddress& address,
                           const CoordinatorPlan& plan) override {
    connected.insert(address.job_uid);
    plans.push_back(plan);
    if (refuses) return Fail(ErrorCode::kConflict, "a greater plan was taken");
    if (error) return std::unexpected(*error);
    if (progress.plan_accepted && plan.stamp < *progress.plan_accepted) {
      return Fail(ErrorCode::kConflict, "a greater plan was taken");
    }
    progress.plan_accepted = plan.stamp;
    return progress;
  }
  Result<Progress> GetProgress(const CoordinatorAddress& address) override {
    connected.insert(address.job_uid);
    ++questions;
    last_host = address.host;
    if (error) return std::unexpected(*error);
    return progress;
  }
  void Forget(const std::string& job_uid) override { connected.erase(job_uid); }

  Progress progress{.term = 1, .state = CoordinatorState::kRunning, .membership_id = "1.1"};
  std::optional<Error> error;
  bool refuses = false;
  std::vector<CoordinatorPlan> plans;
  int questions = 0;
  std::string last_host;
  std::set<std::string> connected;
};

class CoordinatorMonitorTest : public testing::Test {
 protected:
  CoordinatorMonitorTest()
      : monitor(loop, [this](std::function<void()> task) { loop.PostAfter(milliseconds(5), task); },
                coordinator,
                {.lease_transitions = 3,
                 .now = [this] { return At(ToSeconds(loop.Now().time_since_epoch())); },
                 .on_change = [this](const std::string&) { ++changes; }}) {}

  SimEventLoop loop;
  FakeCoordinator coordinator;
  CoordinatorMonitor monitor;
  int changes = 0;
};

const std::vector<PlannedLearner> kTwo = {{.name = "a", .pod_uid = "u1"},
                                          {.name = "b", .pod_uid = "u2"}};

TEST_F(CoordinatorMonitorTest, AsksFirstThenTellsOnce) {
  coordinator.progress.plan_accepted = PlanStamp{3, 40};  // by this leader before its restart
  monitor.Follow(kUid, "team-a", 1, "10.1.0.9");
  monitor.SetDesired(kUid, kTwo, "fair share");
  monitor.SetDesired(kUid, kTwo, "fair share");
  loop.RunFor(milliseconds(100));
  ASSERT_EQ(coordinator.plans.size(), 1u);
  EXPECT_EQ(coordinator.plans[0].stamp, (PlanStamp{3, 41}));
  EXPECT_EQ(coordinator.plans[0].learners, kTwo);
  EXPECT_EQ(coordinator.plans[0].reason, "fair share");
  EXPECT_TRUE(monitor.View(kUid).reachable);
  EXPECT_GT(changes, 0);
  monitor.SetDesired(kUid, kTwo, "a reason with other figures");
  loop.RunFor(seconds(60));
  EXPECT_EQ(coordinator.plans.size(), 1u);
}

TEST_F(CoordinatorMonitorTest, LooksOftenWhileBusyAndSeldomOtherwise) {
  monitor.Follow(kUid, "team-a", 1, "10.1.0.9");
  loop.RunFor(seconds(10));
  EXPECT_NEAR(coordinator.questions, 10, 1);
  monitor.SetBusy(kUid, false);
  coordinator.questions = 0;
  loop.RunFor(seconds(60));
  EXPECT_NEAR(coordinator.questions, 12, 1);
  changes = 0;
  coordinator.progress.step = 99;  // progress only: no change to react to
  loop.RunFor(seconds(10));
  EXPECT_EQ(monitor.View(kUid).progress->step, 99);
  EXPECT_EQ(changes, 0);
}

TEST_F(CoordinatorMonitorTest, NoticesSilenceAndItsEnd) {
  monitor.Follow(kUid, "team-a", 1, "10.1.0.9");
  loop.RunFor(milliseconds(100));
  coordinator.error = Error{ErrorCode::kUnavailable, "connection refused"};
  loop.RunFor(seconds(3));
  EXPECT_FALSE(monitor.View(kUid).reachable);
  ASSERT_TRUE(monitor.View(kUid).silent_since);
  EXPECT_TRUE(monitor.View(kUid).progress) << "its last answer stays valid";
  coordinator.error.reset();
  loop.RunFor(seconds(3));
  EXPECT_TRUE(monitor.View(kUid).reachable);
  EXPECT_FALSE(monitor.View(kUid).silent_since);
}

TEST_F(CoordinatorMonitorTest, ASilentOneIsCalledLessAndLess) {
  coordinator.error = Error{ErrorCode::kTimeout, "no answer"};
  monitor.Follow(kUid, "team-a", 1, "10.1.0.9");
  loop.RunFor(seconds(60));
  EXPECT_NEAR(coordinator.questions, 9, 1) << "after 0, 1, 3, 7, 15, 25 s and so on";

  coordinator.questions = 0;
  monitor.SetDesired(kUid, kTwo, "fair share");
  loop.RunFor(milliseconds(100));
  EXPECT_EQ(coordinator.questions, 1) << "a new plan is tried at once";
  monitor.SetBusy(kUid, false);
  monitor.SetBusy(kUid, true);
  loop.RunFor(seconds(9));
  EXPECT_EQ(coordinator.questions, 1) << "then as rarely as before";

  coordinator.questions = 0;
  monitor.Follow(kUid, "team-a", 2, "10.1.0.10");
  loop.RunFor(seconds(4));
  EXPECT_EQ(coordinator.questions, 3) << "the back-off starts over for another pod";

  coordinator.error.reset();
  coordinator.progress = {.term = 2};
  loop.RunFor(seconds(10));
  ASSERT_TRUE(monitor.View(kUid).reachable);
  ASSERT_EQ(coordinator.plans.size(), 1u);
  coordinator.error = Error{ErrorCode::kTimeout, "no answer"};
  coordinator.questions = 0;
  loop.RunFor(seconds(4));
  EXPECT_GE(coordinator.questions, 2) << "an answer ends the back-off";
}

TEST_F(CoordinatorMonitorTest, SendsAnUnansweredPlanAgainWithANewNumber) {
  monitor.Follow(kUid, "team-a", 1, "10.1.0.9");
  loop.RunFor(milliseconds(100));
  coordinator.error = Error{ErrorCode::kTimeout, "no answer"};
  monitor.SetDesired(kUid, kTwo, "fair share");
  loop.RunFor(milliseconds(100));
  coordinator.error.reset();
  loop.RunFor(seconds(3));
  ASSERT_GE(coordinator.plans.size(), 2u);
  EXPECT_LT(coordinator.plans.front().stamp, coordinator.plans.back().stamp);
  EXPECT_EQ(coordinator.progress.plan_accepted, coordinator.plans.back().stamp);
}

TEST_F(CoordinatorMonitorTest, SendsThePlanToASuccessor) {
  monitor.Follow(kUid, "team-a", 1, "10.1.0.9");
  monitor.SetDesired(kUid, kTwo, "fair share");
  loop.RunFor(milliseconds(100));
  monitor.Disconnect(kUid, 1);
  EXPECT_FALSE(monitor.View(kUid).reachable);
  coordinator.progress = {.term = 2};
  monitor.Follow(kUid, "team-a", 2, "10.1.0.10");
  EXPECT_FALSE(monitor.View(kUid).progress);
  loop.RunFor(milliseconds(100));
  EXPECT_EQ(coordinator.last_host, "10.1.0.10");
  ASSERT_EQ(coordinator.plans.size(), 2u);
  EXPECT_EQ(coordinator.plans[1].learners, kTwo);
}

TEST_F(CoordinatorMonitorTest, SendsThePlanAgainToACoordinatorThatForgotIt) {
  monitor.Follow(kUid, "team-a", 1, "10.1.0.9");
  monitor.SetDesired(kUid, kTwo, "fair share");
  loop.RunFor(milliseconds(100));
  ASSERT_EQ(coordinator.plans.size(), 1u);
  // The container restarted between two polls: same pod, same address.
  coordinator.progress = {.term = 1};
  loop.RunFor(seconds(3));
  ASSERT_EQ(coordinator.plans.size(), 2u);
  EXPECT_EQ(coordinator.plans[1].learners, kTwo);
  EXPECT_LT(coordinator.plans[0].stamp, coordinator.plans[1].stamp);
}

TEST_F(CoordinatorMonitorTest, AnotherTermsAnswerCountsAsNone) {
  coordinator.progress.term = 1;
  monitor.Follow(kUid, "team-a", 2, "10.1.0.9");
  loop.RunFor(seconds(2));
  EXPECT_FALSE(monitor.View(kUid).reachable);
}

TEST_F(CoordinatorMonitorTest, APlanOfALaterLeaderIsReportedAndTheNextCoordinatorGetsOurs) {
  coordinator.progress.plan_accepted = PlanStamp{4, 1};
  monitor.Follow(kUid, "team-a", 1, "10.1.0.9");
  monitor.SetDesired(kUid, kTwo, "fair share");
  loop.RunFor(seconds(5));
  EXPECT_THAT(coordinator.plans, ElementsAre());
  ASSERT_TRUE(monitor.View(kUid).refused_since);
  EXPECT_LE(*monitor.View(kUid).refused_since, At(1));
  EXPECT_TRUE(monitor.View(kUid).reachable);
  EXPECT_GT(changes, 0);

  coordinator.progress = {.term = 2};
  monitor.Follow(kUid, "team-a", 2, "10.1.0.10");
  EXPECT_FALSE(monitor.View(kUid).refused_since);
  loop.RunFor(seconds(5));
  ASSERT_EQ(coordinator.plans.size(), 1u);
  EXPECT_EQ(coordinator.plans[0].learners, kTwo);
}

TEST_F(CoordinatorMonitorTest, ACoordinatorThatRestartsInItsPodRefusesNothing) {
  coordinator.progress.plan_accepted = PlanStamp{4, 1};
  monitor.Follow(kUid, "team-a", 1, "10.1.0.9");
  monitor.SetDesired(kUid, kTwo, "fair share");
  loop.RunFor(seconds(5));
  coordinator.progress.plan_accepted.reset();
  loop.RunFor(seconds(5));
  EXPECT_FALSE(monitor.View(kUid).refused_since);
  EXPECT_EQ(coordinator.plans.size(), 1u);
}

TEST_F(CoordinatorMonitorTest, AfterForgetNobodyIsAsked) {
  monitor.Follow(kUid, "team-a", 1, "10.1.0.9");
  monitor.Forget(kUid);
  loop.RunFor(seconds(5));
  EXPECT_EQ(coordinator.questions, 0);
}

TEST_F(CoordinatorMonitorTest, NoConnectionIsKeptToACoordinatorThatIsGone) {
  monitor.Follow(kUid, "team-a", 1, "10.1.0.9");
  loop.RunFor(milliseconds(100));
  EXPECT_THAT(coordinator.connected, ElementsAre(kUid));
  monitor.Disconnect(kUid, 1);
  EXPECT_THAT(coordinator.connected, ElementsAre()) << "a finished job may be kept for days";
  monitor.Follow(kUid, "team-a", 2, "10.1.0.10");
  loop.RunFor(milliseconds(100));
  EXPECT_THAT(coordinator.connected, ElementsAre(kUid));
  monitor.Forget(kUid);
  EXPECT_THAT(coordinator.connected, ElementsAre());
}

TEST_F(CoordinatorMonitorTest, ACallThatWaitedForItsTurnLeavesNoConnectionBehind) {
  using Leave = std::function<void()>;
  for (const Leave& leave :
       {Leave([&] { monitor.Disconnect(kUid, 1); }), Leave([&] { monitor.Forget(kUid); })}) {
    coordinator.questions = 0;
    monitor.Follow(kUid, "team-a", 1, "10.1.0.9");
    loop.RunFor(milliseconds(1));  // a worker has it, but calls after 5 ms
    leave();
    loop.RunFor(seconds(5));
    EXPECT_EQ(coordinator.questions, 1);
    EXPECT_THAT(coordinator.connected, ElementsAre());
  }
}

TEST_F(CoordinatorMonitorTest, ACoordinatorThatRefusesEveryPlanIsUnreachable) {
  coordinator.refuses = true;
  monitor.Follow(kUid, "team-a", 1, "10.1.0.9");
  monitor.SetDesired(kUid, kTwo, "fair share");
  loop.RunFor(seconds(10));
  EXPECT_FALSE(monitor.View(kUid).reachable);
  ASSERT_TRUE(monitor.View(kUid).silent_since);
  EXPECT_LE(*monitor.View(kUid).silent_since, At(1));
  const int calls = coordinator.questions + static_cast<int>(coordinator.plans.size());
  loop.RunFor(seconds(60));
  EXPECT_LE(coordinator.questions + static_cast<int>(coordinator.plans.size()) - calls, 10);
  EXPECT_TRUE(monitor.View(kUid).progress) << "its report may be true";

  coordinator.refuses = false;
  loop.RunFor(seconds(25));
  EXPECT_TRUE(monitor.View(kUid).reachable);
  EXPECT_EQ(coordinator.progress.plan_accepted, coordinator.plans.back().stamp);
}

TEST_F(CoordinatorMonitorTest, ARefusalOrTwoLeaveACoordinatorReachable) {
  coordinator.progress.plan_accepted = PlanStamp{3, 5};
  monitor.Follow(kUid, "team-a", 1, "10.1.0.9");
  loop.RunFor(milliseconds(100));
  coordinator.progress.plan_accepted = PlanStamp{3, 9};  // by a predecessor that was still running
  monitor.SetDesired(kUid, kTwo, "fair share");
  loop.RunFor(milliseconds(100));
  EXPECT_EQ(coordinator.progress.plan_accepted, (PlanStamp{3, 10}));
  EXPECT_TRUE(monitor.View(kUid).reachable);
}

// The prefix of the job's uid decides whether it answers, and how slowly.
class SomeSilent final : public CoordinatorClient {
 public:
  explicit SomeSilent(SlowCalls& calls) : calls_(calls) {}
  Result<Progress> PutPlan(const CoordinatorAddress& address,
                           const CoordinatorPlan& plan) override {
    ++plans_taken;
    accepted_ = plan.stamp;
    return GetProgress(address);
  }
  Result<Progress> GetProgress(const CoordinatorAddress& address) override {
    const bool silent = address.job_uid.starts_with("silent");
    const bool slow = address.job_uid.starts_with("slow");
    calls_.took = silent ? Duration(seconds(3)) : Duration(milliseconds(slow ? 2900 : 1));
    if (slow) called.insert(address.job_uid);
    if (silent) {
      called.insert(address.job_uid);
      return Fail(ErrorCode::kTimeout, "no answer");
    }
    Progress progress{.term = 1};
    progress.plan_accepted = accepted_;
    return progress;
  }
  void Forget(const std::string&) override {}

  int plans_taken = 0;           // including those of slow ones
  std::set<std::string> called;  // jobs whose coordinator is silent or slow

 private:
  SlowCalls& calls_;
  std::optional<PlanStamp> accepted_;
};

// The slow ones always answer in time, but each call occupies a thread almost until its timeout.
TEST(CoordinatorMonitor, SlowOnesDoNotHoldUpOthers) {
  SimEventLoop loop;
  SlowCalls calls(loop, 12);
  SomeSilent client(calls);
  CoordinatorMonitor monitor(calls, [&](std::function<void()> task) { calls.Run(std::move(task)); },
                             client,
                             {.lease_transitions = 3,
                              .now = [&] { return At(ToSeconds(loop.Now().time_since_epoch())); },
                              .on_change = [](const std::string&) {}});
  monitor.Follow(kUid, "team-a", 1, "10.1.0.9");
  loop.RunFor(seconds(1));
  for (int i = 0; i < 40; ++i) {
    const std::string job = "slow-" + std::to_string(i);
    monitor.Follow(job, "team-" + std::to_string(i % 5), 1, "10.2.0.1");
  }
  for (int plan = 1; plan <= 60; ++plan) {
    loop.RunFor(milliseconds(900));
    monitor.SetDesired(kUid, {{.name = "a", .pod_uid = std::to_string(plan)}}, "fair share");
    loop.RunFor(milliseconds(100));
    ASSERT_EQ(client.plans_taken, plan) << "sent within 100 ms";
  }
  EXPECT_EQ(client.called.size(), 40u) << "every other one was called, too";
}

TEST(CoordinatorMonitor, SilentOnesDoNotHoldUpOthers) {
  SimEventLoop loop;
  SlowCalls calls(loop, 12);
  SomeSilent client(calls);
  CoordinatorMonitor monitor(calls, [&](std::function<void()> task) { calls.Run(std::move(task)); },
                             client,
                             {.lease_transitions = 3,
                              .now = [&] { return At(ToSeconds(loop.Now().time_since_epoch())); },
                              .on_change = [](const std::string&) {}});
  monitor.Follow(kUid, "team-a", 1, "10.1.0.9");
  loop.RunFor(seconds(1));
  for (int i = 0; i < 40; ++i)
    monitor.Follow("silent-" + std::to_string(i), "team-b", 1, "10.2.0.1");
  for (int plan = 1; plan <= 120; ++plan) {
    loop.RunFor(milliseconds(900));
    monitor.SetDesired(kUid, {{.name = "a", .pod_uid = std::to_string(plan)}}, "fair share");
    loop.RunFor(milliseconds(100));
    ASSERT_EQ(client.plans_taken, plan) << "sent within 100 ms";
  }
  EXPECT_EQ(client.called.size(), 40u) << "every other one was called, too";

  client.called.clear();
  for (int i = 0; i < 40; i += 2) monitor.Forget("silent-" + std::to_string(i));
  loop.RunFor(seconds(60));
  EXPECT_EQ(client.called.size(), 20u);
}

}  // namespace
}  // namespace pliant::controller
