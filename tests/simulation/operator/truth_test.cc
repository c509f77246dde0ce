// Differences between the operator's view and reality: silent watches, clocks that are set, pods
// that admission changes.
#include <chrono>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "operator/controller/model/names.h"
#include "tests/kube/request_target.h"
#include "tests/simulation/operator/objects.h"
#include "tests/simulation/operator/sized_story.h"

namespace pliant::operator_sim {
namespace {

using namespace std::chrono_literals;

class Truth : public SizedStory {
 protected:
  Truth() : SizedStory(12) {}

  int LearnersMade(const std::string& job) const {
    return world.Status(job).value("nextLearner", 0);
  }
};

// The operator waits one minute for its own writes to appear in a watch.
TEST_F(Truth, ASilentWatchCreatesNoLearnerTwice) {
  Submit("one", 1, 8);
  ASSERT_TRUE(world.RunUntil([&] { return LearnersMade("one") > 0; }, 1min)) << world.Describe();
  world.FreezeWatches(world.leading(), 75s);
  world.loop.RunFor(75s);
  EXPECT_EQ(LearnersMade("one"), 8) << world.Describe();
  ASSERT_TRUE(ReachLearners("one", 8)) << world.Describe();
  world.loop.RunFor(2min);
  EXPECT_EQ(LearnersMade("one"), 8);
  EXPECT_EQ(world.Status("one").value("restarts", 0), 0) << world.Describe();
}

// The new leader's watch was silent while its predecessor created learners. They continue to train.
TEST_F(Truth, LearnersThatALeaderHasNotSeenAreNotSaidToHaveEnded) {
  const std::size_t first = world.leading();
  world.FreezeWatches(1 - first, 75s);
  Submit("one", 1, 8);
  ASSERT_TRUE(ReachLearners("one", 8, 20s)) << world.Describe();
  const std::vector<std::string> learners = world.PodsOf("one", "learner");
  world.Kill(first);
  ASSERT_TRUE(world.RunUntil([&] { return world.leading() == 1 - first; }, 40s));
  world.loop.RunFor(3min);
  EXPECT_EQ(world.PodsOf("one", "learner"), learners) << world.Describe();
  EXPECT_EQ(LearnersMade("one"), 8);
  EXPECT_EQ(world.Status("one").value("restarts", 0), 0);
  EXPECT_EQ(world.Status("one").value("learners", 0), 8);
}

TEST_F(Truth, AClockThatIsSetWithdrawsNoLearnerThatStarts) {
  world.cluster.has_images = false;
  Submit("one", 1, 4, {{"startTimeoutSeconds", 600}});
  ASSERT_TRUE(world.RunUntil([&] { return LearnersMade("one") == 4; }, 1min));
  world.loop.RunFor(20s);
  world.StepClock(world.leading(), 2h);
  world.loop.RunFor(40s);
  world.cluster.has_images = true;
  ASSERT_TRUE(ReachLearners("one", 4)) << world.Describe();
  EXPECT_EQ(LearnersMade("one"), 4) << world.Describe();
}

TEST_F(Truth, AClockThatIsHalfAnHourAheadFailsAndDeletesNoJob) {
  Submit("limited", 1, 4, {{"activeDeadlineSeconds", 1500}});
  world.Submit(
      "done", {.steps = 20},
      {{"elastic", {{"minLearners", 1}, {"maxLearners", 4}}}, {"ttlSecondsAfterFinished", 900}});
  ASSERT_TRUE(ReachLearners("limited", 4) &&
              world.RunUntil([&] { return world.Phase("done") == "Succeeded"; }, 5min))
      << world.Describe();
  // The clock of its node was wrong from the beginning.
  const std::size_t first = world.leading();
  world.StepClock(1 - first, 30min);
  world.Kill(1 - first);
  ASSERT_TRUE(world.RunUntil([&] { return !world.faulty(); }, 1s));
  world.loop.RunFor(1min);
  world.Kill(first);
  ASSERT_TRUE(world.RunUntil([&] { return world.leading() == 1 - first; }, 1min));
  world.loop.RunFor(10min);
  EXPECT_EQ(world.leading(), 1 - first);
  EXPECT_EQ(world.Phase("limited"), "Running");
  EXPECT_EQ(world.Phase("done"), "Succeeded") << "the job must not be deleted";
  // Once its clock agrees with the API server's, deadlines apply.
  world.StepClock(1 - first, -30min);
  EXPECT_TRUE(world.RunUntil([&] { return world.Phase("done").empty(); }, 2h));
}

// A successor does not wait until the recorded time, which lies in the future.
TEST_F(Truth, AResizeThatWasWrittenByAClockAheadFreezesNoJob) {
  const std::size_t first = world.leading();
  world.StepClock(first, 1h);
  world.Kill(first);
  ASSERT_TRUE(world.RunUntil([&] { return world.leading() == 1 - first; }, 1min));
  world.loop.RunFor(1min);
  world.Kill(1 - first);  // the replica whose clock is ahead leads
  ASSERT_TRUE(world.RunUntil([&] { return world.leading() == first; }, 1min));
  Submit("one", 1, 8, {{"resize", {{"cooldownSeconds", 60}, {"gracePeriodSeconds", 10}}}});
  ASSERT_TRUE(ReachLearners("one", 8)) << world.Describe();
  world.Kill(first);
  ASSERT_TRUE(world.RunUntil([&] { return world.leading() == 1 - first; }, 1min));
  Submit("two", 1, 8);
  EXPECT_TRUE(ReachLearners("two", 4, 3min)) << world.Describe();
}

// Admission adds a toleration, as ExtendedResourceToleration does, and a sidecar: the planner
// counts with the admitted pod, not with the one that was sent.
class Admission : public Truth {
 protected:
  void TolerateGpus() {
    world.server.mutate = [](const std::string& path, Json& object) {
      if (!kube::IsIn(kPods, path) || !IsLearner(object)) return;
      object["spec"]["tolerations"].push_back({{"key", "nvidia.com/gpu"}, {"operator", "Exists"}});
      object["spec"]["containers"].push_back(Json::parse(
          R"({"name": "proxy", "image": "p", "resources": {"requests": {"cpu": "15"}}})"));
    };
  }
};

TEST_F(Admission, LearnersArePlacedAsTheyAreAdmitted) {
  TolerateGpus();
  for (const char* node : {"node-0", "node-1"}) {
    world.server.Change(std::string("/api/v1/nodes/") + node, [](Json& object) {
      object["spec"]["taints"] =
          Json::array({{{"key", "nvidia.com/gpu"}, {"effect", "NoSchedule"}}});
      object["status"]["allocatable"]["cpu"] = "32";
    });
  }
  Submit("one", 1, 8);
  // Two pods of 15 CPUs fit on each node.
  ASSERT_TRUE(ReachLearners("one", 4)) << world.Describe();
  world.loop.RunFor(3min);
  EXPECT_EQ(LearnersMade("one"), 4) << world.Describe();
  // The same holds for a job that waits while leaders change: none of its learners has been
  // admitted yet.
  world.Edit("one", {{"suspend", true}});
  ASSERT_TRUE(ReachLearners("one", 0));
  Submit("two", 5, 8);
  world.loop.RunFor(10s);
  const std::size_t first = world.leading();
  world.Kill(first);
  ASSERT_TRUE(world.RunUntil([&] { return world.leading() == 1 - first; }, 1min));
  world.loop.RunFor(1min);
  EXPECT_TRUE(world.PodsOf("two", "learner").empty()) << world.Describe();
  const int made = LearnersMade("two");
  world.loop.RunFor(5min);
  EXPECT_EQ(LearnersMade("two"), made) << "the operator remembers how the first ones were admitted";
  world.Edit("two", {{"elastic", {{"minLearners", 4}, {"maxLearners", 8}}}});
  EXPECT_TRUE(ReachLearners("two", 4)) << world.Describe();
}

}  // namespace
}  // namespace pliant::operator_sim
