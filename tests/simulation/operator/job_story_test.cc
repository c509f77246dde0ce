// The lives of jobs, from submission to the end.
#include <chrono>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "operator/controller/model/names.h"
#include "tests/simulation/operator/objects.h"
#include "tests/simulation/operator/story_world.h"

namespace pliant::operator_sim {
namespace {

using namespace std::chrono_literals;
using testing::Contains;
using testing::HasSubstr;
using testing::Not;

// The main story: one job alone has 8 learners; with a second, equal job they have 4 and 4; after
// its priority is doubled, 3 and 5; when the first completes, the second has 8.
TEST_F(OperatorStory, TwoTrainingsShareTheCluster) {
  world.Submit("one");
  ASSERT_TRUE(world.ReachSizes({{"one", 8}})) << world.Describe();
  world.Submit("two");
  ASSERT_TRUE(world.ReachSizes({{"one", 4}, {"two", 4}}));
  world.Edit("two", {{"priority", 10000}});
  ASSERT_TRUE(world.ReachSizes({{"one", 3}, {"two", 5}}));
  world.trainings.Complete("one");
  ASSERT_TRUE(world.ReachSizes({{"two", 8}}));
  EXPECT_EQ(world.Phase("one"), "Succeeded");
  EXPECT_EQ(world.Status("one").value("parametersSha256", ""), std::string(64, 'a'));
  world.trainings.Complete("two");
  ASSERT_TRUE(world.Reach([&] {
    return world.Phase("two") == "Succeeded" && world.CountPods("two", "coordinator") == 0;
  }));
  EXPECT_EQ(world.CountPods("one", "coordinator"), 0);
  EXPECT_EQ(world.CountPods("one", "learner") + world.CountPods("two", "learner"), 0);
  EXPECT_EQ(world.Status("one").value("restarts", -1), 0) << "no learner failed";
  EXPECT_THAT(world.events, Contains("one: Completed"));
}

TEST_F(OperatorStory, AJobIsSeenInMetricsUntilItHasEnded) {
  const auto job = [](const std::string& metric, const std::string& name) {
    return metric + "{job_name=\"" + name + "\",job_namespace=\"team-a\"} ";
  };
  world.Submit("one");
  world.Submit("two");
  ASSERT_TRUE(world.ReachSizes({{"one", 4}, {"two", 4}}));
  std::string text = world.leader()->Metrics();
  EXPECT_THAT(text, HasSubstr(job("pliant_job_entitlement_gpus", "one") + "4\n"));
  EXPECT_THAT(text, HasSubstr(job("pliant_job_allocated_gpus", "two") + "4\n"));
  EXPECT_THAT(text, HasSubstr(job("pliant_job_demand_gpus", "two") + "8\n"));
  EXPECT_THAT(text, HasSubstr("pliant_capacity_gpus 8\n"));
  EXPECT_THAT(text, HasSubstr("pliant_job_wait_seconds_count 2\n"));
  EXPECT_THAT(text, HasSubstr("pliant_coordinator_requests_total{result=\"OK\"}"));
  EXPECT_THAT(text, Not(HasSubstr("waiting_since")));

  world.Edit("two", {{"suspend", true}});
  world.trainings.Complete("one");
  ASSERT_TRUE(world.Reach(
      [&] { return world.Phase("one") == "Succeeded" && world.Phase("two") == "Suspended"; }));
  text = world.leader()->Metrics();
  EXPECT_THAT(text, Not(HasSubstr("\"one\"")));
  EXPECT_THAT(text, HasSubstr(job("pliant_job_allocated_gpus", "two") + "0\n"));
  EXPECT_THAT(text, HasSubstr("pliant_jobs{phase=\"Succeeded\"} 1\n"));
}

// The same story with the operator killed after each change, at varying moments.
TEST_F(OperatorStory, AnOperatorThatIsKilledAtAnyMomentChangesNothing) {
  for (Duration delay = 0ms; delay <= 1s; delay += 125ms) {
    SCOPED_TRACE(ToSeconds(delay));
    StoryWorld again(13);
    const auto kill = [&] {
      again.loop.RunFor(delay);
      again.KillOperator();
    };
    again.Submit("one");
    kill();
    ASSERT_TRUE(again.ReachSizes({{"one", 8}}));
    again.Submit("two");
    kill();
    ASSERT_TRUE(again.ReachSizes({{"one", 4}, {"two", 4}}));
    again.Edit("two", {{"priority", 10000}});
    kill();
    ASSERT_TRUE(again.ReachSizes({{"one", 3}, {"two", 5}}));
    again.trainings.Complete("one");
    kill();
    ASSERT_TRUE(again.ReachSizes({{"two", 8}}));
    EXPECT_EQ(again.Phase("one"), "Succeeded");
    EXPECT_EQ(again.Term("one"), 1) << "no coordinator was replaced";
    EXPECT_EQ(again.Term("two"), 1) << "no coordinator was replaced";
    EXPECT_GE(again.deaths(), 4);
  }
}

TEST_F(OperatorStory, NothingIsWrittenWhileNothingChanges) {
  world.Submit("one", {{"elastic", {{"maxLearners", 2}}}});
  ASSERT_TRUE(world.ReachSizes({{"one", 2}}));
  world.loop.RunFor(5s);
  const int before = world.Writes();
  world.loop.RunFor(100s);
  EXPECT_LE(world.Writes() - before, 4) << "progress is written at most every 30 s";
  EXPECT_GE(world.Writes() - before, 2);
}

TEST_F(OperatorStory, ACrashedLearnerIsReplaced) {
  world.Submit("one");
  ASSERT_TRUE(world.ReachSizes({{"one", 8}}));
  world.CrashALearner("one");
  ASSERT_TRUE(world.Reach([&] { return world.Learners("one") == 7; }));
  ASSERT_TRUE(world.ReachSizes({{"one", 8}}));
  EXPECT_EQ(world.Status("one").value("restarts", 0), 1);
  EXPECT_THAT(world.events, Contains("one: LearnerFailed"));
}

TEST_F(OperatorStory, SuspendReleasesEverythingAndResumeContinues) {
  world.Submit("one");
  ASSERT_TRUE(world.ReachSizes({{"one", 8}}));
  world.Edit("one", {{"suspend", true}});
  ASSERT_TRUE(world.Reach([&] { return world.Phase("one") == "Suspended"; }));
  EXPECT_EQ(world.CountPods("one", "learner"), 0);
  ASSERT_TRUE(world.Reach([&] { return world.CountPods("one", "coordinator") == 0; }));
  EXPECT_EQ(world.Status("one").value("restarts", -1), 0);
  world.Edit("one", {{"suspend", false}});
  ASSERT_TRUE(world.ReachSizes({{"one", 8}}));
}

// The number of its shards was fixed for 8 learners when it was first admitted.
TEST_F(OperatorStory, AJobThatWasScaledBeyondItsShardsIsSuspendedAndResumed) {
  world.Submit("one", {{"training", {{"logicalShards", 8}}}});
  ASSERT_TRUE(world.ReachSizes({{"one", 8}}));
  world.Edit("one", {{"elastic", {{"maxLearners", 16}}}, {"suspend", true}});
  ASSERT_TRUE(world.Reach([&] { return world.Phase("one") == "Suspended"; }));
  world.Edit("one", {{"suspend", false}});
  ASSERT_TRUE(world.ReachSizes({{"one", 8}}));
}

TEST_F(OperatorStory, LosingAllLearnersAtOnceIsRecoveredFrom) {
  world.Submit("one");
  ASSERT_TRUE(world.ReachSizes({{"one", 8}}));
  world.RemovePods("one", "learner");
  ASSERT_TRUE(world.Reach([&] { return world.Phase("one") == "Recovering"; }));
  ASSERT_TRUE(world.ReachSizes({{"one", 8}}));
  EXPECT_EQ(world.Status("one").value("restarts", -1), 0)
      << "a deleted pod does not count as a failure";
}

TEST_F(OperatorStory, ALostCoordinatorIsReplacedWhileTrainingContinues) {
  world.Submit("one");
  ASSERT_TRUE(world.ReachSizes({{"one", 8}}));
  world.RemovePods("one", "coordinator");
  ASSERT_TRUE(world.Reach([&] { return world.HasCoordinator("one", 2); }));
  EXPECT_EQ(world.CountPods("one", "learner"), 8);
  world.Submit("two");
  ASSERT_TRUE(world.ReachSizes({{"one", 4}, {"two", 4}}));
  EXPECT_EQ(world.Status("one").value("restarts", -1), 0);
  EXPECT_THAT(world.events, Contains("one: CoordinatorReplaced"));
}

TEST_F(OperatorStory, AProgramThatAlwaysFailsFailsItsJobAndHarmsNoOther) {
  world.Submit("good", {{"elastic", {{"maxLearners", 4}}}});
  ASSERT_TRUE(world.ReachSizes({{"good", 4}}));
  world.Submit("bad", {.exit_code = 1},
               {{"elastic", {{"maxLearners", 8}}}, {"failurePolicy", {{"maxFailures", 4}}}});
  ASSERT_TRUE(world.Reach([&] { return world.Phase("bad") == "Failed"; }));
  world.loop.RunFor(10s);
  EXPECT_THAT(world.events, Contains("bad: TooManyFailures"));
  EXPECT_EQ(world.CountPods("bad", "learner") + world.CountPods("bad", "coordinator"), 0);
  EXPECT_EQ(world.Learners("good"), 4);
}

TEST_F(OperatorStory, AWrongProgramFailsAtOnce) {
  world.Submit("bad", {.exit_code = 2}, {{"elastic", {{"maxLearners", 8}}}});
  ASSERT_TRUE(world.Reach([&] { return world.Phase("bad") == "Failed"; }));
  world.loop.RunFor(1s);
  EXPECT_THAT(world.events, Contains("bad: PermanentExitCode"));
}

TEST_F(OperatorStory, AFinishedJobGoesWhenItsTimeIsUp) {
  world.Submit("one", {{"ttlSecondsAfterFinished", 30}});
  world.Submit("two");
  ASSERT_TRUE(world.ReachSizes({{"one", 4}, {"two", 4}}));
  world.trainings.Complete("one");
  ASSERT_TRUE(world.Reach([&] { return world.Phase("one") == "Succeeded"; }));
  world.loop.RunFor(25s);
  EXPECT_EQ(world.Phase("one"), "Succeeded");
  world.loop.RunFor(10s);
  EXPECT_EQ(world.Phase("one"), "") << "the job is deleted";
  ASSERT_TRUE(world.ReachSizes({{"two", 8}}));
}

TEST_F(OperatorStory, ADeadlineEndsATrainingAndFreesItsGpus) {
  world.Submit("one", {{"activeDeadlineSeconds", 60}});
  world.Submit("two");
  ASSERT_TRUE(world.ReachSizes({{"one", 4}, {"two", 4}}));
  ASSERT_TRUE(world.Reach([&] { return world.Phase("one") == "Failed"; }));
  ASSERT_TRUE(world.ReachSizes({{"two", 8}}));
  EXPECT_THAT(world.events, Contains("one: DeadlineExceeded"));
}

TEST_F(OperatorStory, AMissingImageIsReportedAndItsGrantIsWithdrawn) {
  world.cluster.has_image = [](const Json& pod) {
    return !IsLearner(pod) || LabelOf(pod, controller::kLabelJob) != "bad";
  };
  world.Submit("bad");
  ASSERT_TRUE(world.ReachEvent("bad: ImagePullFailed"));
  // After the start timeout the GPUs go to a job that can use them.
  world.Submit("good", {{"elastic", {{"minLearners", 8}}}});
  ASSERT_TRUE(world.ReachSizes({{"good", 8}}));
}

TEST_F(OperatorStory, ANodeThatComesAndGoesIsNoNewsForThoseThatWait) {
  world.Submit("one", {{"template", {{"spec", {{"nodeSelector", {{"zone", "moon"}}}}}}}});
  ASSERT_TRUE(world.Reach([&] { return world.Phase("one") == "Queued"; }));
  const std::string first = world.Status("one").value("reason", "");
  world.loop.RunFor(1s);
  const int before = world.Writes();
  for (int i = 0; i < 60; ++i) {
    world.cluster.SetCordoned("node-0", i % 2 == 0);
    world.loop.RunFor(1s);
    if (i == 0) {
      EXPECT_EQ(world.Writes(), before);
    }
  }
  EXPECT_LE(world.Writes() - before, 2) << "at most one write every 30 s";
  world.cluster.SetCordoned("node-0", true);
  world.loop.RunFor(60s);
  const Json status = world.Status("one");
  EXPECT_NE(status.value("reason", ""), first) << "a lasting change is reported";
  for (const Json& condition : status.at("conditions")) {
    if (condition.at("type") == "Progressing") {
      EXPECT_EQ(condition.at("message"), status.at("reason"));
    }
  }
}

}  // namespace
}  // namespace pliant::operator_sim
