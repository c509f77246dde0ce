// Several teams on one cluster: two nodes of four GPUs.
#include <chrono>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/simulation/operator/sized_story.h"

namespace pliant::operator_sim {
namespace {

using namespace std::chrono_literals;
using controller::kGpuPools;
using controller::kTrainingQueues;
using testing::HasSubstr;

class QueueStory : public SizedStory {
 protected:
  void Queue(const std::string& name, Json spec) {
    spec.emplace("namespaceSelector", Json::object());
    world.Apply(kTrainingQueues, name, spec);
  }
  void SubmitTo(const std::string& queue, const std::string& job, int min_learners,
                int max_learners) {
    Submit(job, min_learners, max_learners, {{"queue", queue}});
  }
  // Whether the status of the queue gets these values.
  bool ReachQueue(const std::string& queue, const Json& values) {
    return world.Reach([&] {
      const Json status = world.StatusOf(kTrainingQueues, queue);
      for (const auto& [field, value] : values.items()) {
        if (status.value(field, Json()) != value) return false;
      }
      return true;
    });
  }
  // "Reason: message" of a condition of the queue or pool; "" if it has none.
  std::string ConditionOf(const kube::ResourceType& type, const std::string& name,
                          const std::string& condition) {
    const Json conditions = world.StatusOf(type, name).value("conditions", Json::array());
    for (const Json& each : conditions) {
      if (each.at("type") != condition) continue;
      return each.at("reason").get<std::string>() + ": " + each.at("message").get<std::string>();
    }
    return "";
  }
  bool ReachCondition(const kube::ResourceType& type, const std::string& name,
                      const std::string& condition, const std::string& reason) {
    return world.Reach(
        [&] { return ConditionOf(type, name, condition).starts_with(reason + ": "); });
  }
  bool ReachReason(const std::string& job, const std::string& part) {
    return world.Reach(
        [&] { return world.Status(job).value("reason", "").find(part) != std::string::npos; });
  }
};

TEST_F(QueueStory, ALoanComesBackWhenItsOwnerNeedsIt) {
  Queue("research", {{"guaranteed", 4}});
  Queue("batch", Json::object());
  SubmitTo("batch", "nightly", 1, 8);
  ASSERT_TRUE(world.ReachSizes({{"nightly", 8}})) << world.Describe();
  EXPECT_TRUE(ReachQueue("batch", {{"allocated", 8}, {"borrowed", 4}, {"running", 1}}));
  EXPECT_TRUE(ReachQueue("research", {{"lent", 4}, {"allocated", 0}}));

  SubmitTo("research", "paper", 2, 4);
  ASSERT_TRUE(world.ReachSizes({{"nightly", 4}, {"paper", 4}}));
  EXPECT_TRUE(ReachQueue("research", {{"lent", 0}, {"allocated", 4}, {"entitled", 4}}));
  EXPECT_TRUE(ReachQueue("batch", {{"borrowed", 0}, {"allocated", 4}}));
  EXPECT_THAT(ConditionOf(kTrainingQueues, "research", "GuaranteeMet"), HasSubstr("Met: "));
  world.trainings.Complete("paper");
  ASSERT_TRUE(world.ReachSizes({{"nightly", 8}}));
  EXPECT_EQ(world.Status("nightly").value("restarts", -1), 0) << "it was never stopped";
}

TEST_F(QueueStory, AMinimumInTheWayOfAGuaranteeIsReleasedAndContinuesLater) {
  Queue("research", {{"guaranteed", 4}});
  Queue("batch", Json::object());
  SubmitTo("batch", "older", 4, 4);
  ASSERT_TRUE(world.ReachSizes({{"older", 4}}));
  SubmitTo("batch", "newer", 4, 4);
  ASSERT_TRUE(world.ReachSizes({{"older", 4}, {"newer", 4}}));
  SubmitTo("research", "paper", 4, 4);
  ASSERT_TRUE(world.ReachSizes({{"older", 4}, {"paper", 4}}));
  EXPECT_EQ(world.Phase("newer"), "Queued");
  EXPECT_TRUE(ReachReason("newer", "waits for 4 GPUs (minLearners 4)"));
  EXPECT_THAT(world.Status("newer").value("reason", ""), testing::Not(HasSubstr("paper")))
      << "other tenants' jobs are named in the event only";
  for (const char* told : {"newer", "TrainingQueue batch", "TrainingQueue research"}) {
    EXPECT_THAT(world.events, testing::Contains(std::string(told) + ": Reclaimed"));
  }
  world.trainings.Complete("paper");
  ASSERT_TRUE(world.ReachSizes({{"older", 4}, {"newer", 4}}));
  EXPECT_EQ(world.Status("newer").value("restarts", -1), 0);
}

TEST_F(QueueStory, AQueueThatOnlyShrinksWaitsForAMinimum) {
  Queue("research", {{"guaranteed", 4}, {"reclaim", "ShrinkOnly"}});
  Queue("batch", Json::object());
  SubmitTo("batch", "b", 8, 8);
  ASSERT_TRUE(world.ReachSizes({{"b", 8}}));
  SubmitTo("research", "paper", 4, 4);
  ASSERT_TRUE(ReachReason("paper", "waits for 4 GPUs"));
  EXPECT_TRUE(ReachCondition(kTrainingQueues, "research", "GuaranteeMet", "BelowGuarantee"));
  EXPECT_EQ(world.Learners("b"), 8);
}

TEST_F(QueueStory, AnUnknownQueueSaysSoAndAnAdministratorMayCreateIt) {
  SubmitTo("vision", "early", 1, 8);
  ASSERT_TRUE(ReachReason("early", "there is no queue vision"));
  EXPECT_EQ(world.Phase("early"), "Queued");
  Queue("vision", Json::object());
  ASSERT_TRUE(world.ReachSizes({{"early", 8}}));

  // A queue that is deleted under a running job: the job continues, and no other is admitted.
  world.Remove(kTrainingQueues, "vision");
  SubmitTo("vision", "late", 1, 8);
  ASSERT_TRUE(ReachReason("late", "there is no queue vision"));
  world.loop.RunFor(1min);
  EXPECT_EQ(world.Learners("early"), 8);
}

TEST_F(QueueStory, ANamespaceThatMayNotUseAQueueIsRefusedInWords) {
  world.server.Put("/api/v1/namespaces/team-a", {{"metadata", {{"name", "team-a"}}}});
  world.Apply(kTrainingQueues, "vision",
              {{"namespaceSelector", {{"matchLabels", {{"team", "vision"}}}}}});
  SubmitTo("vision", "one", 1, 8);
  ASSERT_TRUE(ReachReason("one", "namespace team-a may not use queue vision"));
  world.server.Put("/api/v1/namespaces/team-a",
                   {{"metadata", {{"name", "team-a"}, {"labels", {{"team", "vision"}}}}}});
  ASSERT_TRUE(world.ReachSizes({{"one", 8}}));
}

TEST_F(QueueStory, AStoppedQueueHoldsNewJobsAndADrainedOneReleasesItsJobs) {
  Queue("batch", {{"stop", "Hold"}});
  SubmitTo("batch", "one", 1, 8);
  ASSERT_TRUE(ReachReason("one", "queue batch admits no jobs: its spec.stop is Hold"));
  Queue("batch", {{"stop", "None"}});
  ASSERT_TRUE(world.ReachSizes({{"one", 8}}));
  Queue("batch", {{"stop", "Drain"}});
  ASSERT_TRUE(world.Reach(
      [&] { return world.Phase("one") == "Queued" && world.CountPods("one", "learner") == 0; }));
  EXPECT_TRUE(ReachCondition(kTrainingQueues, "batch", "Active", "Drained"));
  Queue("batch", {{"stop", "None"}});
  ASSERT_TRUE(world.ReachSizes({{"one", 8}}));
}

TEST_F(QueueStory, LimitsOfQueueAndPoolHoldWhateverAJobAsksFor) {
  world.Apply(kGpuPools, "default", {{"bounds", {{"gpusPerJob", 3}}}, {"reservedGpus", 1}});
  Queue("batch", {{"priority", {{"default", 100}, {"max", 200}}}});
  Submit("greedy", 1, 8, {{"queue", "batch"}, {"priority", 10000}});
  Submit("modest", 1, 8, {{"queue", "batch"}});
  ASSERT_TRUE(world.ReachSizes({{"greedy", 3}, {"modest", 3}}));
  const auto limited = [&](const std::string& job) {
    const Json conditions = world.Status(job).at("conditions");
    for (const Json& condition : conditions) {
      if (condition.at("type") == "Limited") return condition.at("message").get<std::string>();
    }
    return std::string();
  };
  EXPECT_EQ(limited("greedy"),
            "priority counts as 200, not as 10000: more is not allowed in queue batch; "
            "elastic.maxLearners counts as 3, not as 8: more is not allowed in pool default");
  EXPECT_TRUE(world.Reach([&] {
    return world.StatusOf(kGpuPools, "default").value("allocatedGpus", 0) == 6;
  })) << world.StatusOf(kGpuPools, "default")
      << world.Status("greedy");
  Submit("third", 2, 2, {{"queue", "batch"}});
  ASSERT_TRUE(world.ReachSizes({{"greedy", 3}, {"modest", 2}, {"third", 2}}));
  world.Apply(kGpuPools, "default", {{"reservedGpus", 0}});
  ASSERT_TRUE(world.ReachSizes({{"greedy", 3}, {"modest", 3}, {"third", 2}}));
}

TEST_F(QueueStory, GuaranteesThatTheClusterCannotKeepAreNamed) {
  Queue("research", {{"guaranteed", 6}});
  Queue("batch", {{"guaranteed", 6}});
  ASSERT_TRUE(
      ReachCondition(kTrainingQueues, "research", "GuaranteeMet", "GuaranteesBeyondCapacity"));
  EXPECT_THAT(
      ConditionOf(kTrainingQueues, "batch", "GuaranteeMet"),
      HasSubstr("the queues of pool default are guaranteed 12 GPUs together, and it has 8"));
  world.Apply(kTrainingQueues, "batch", {{"guaranteed", 2}});
  ASSERT_TRUE(ReachCondition(kTrainingQueues, "research", "GuaranteeMet", "Met"));
  for (const char* told : {"GuaranteeUnmet", "GuaranteeMet"}) {
    EXPECT_TRUE(world.ReachEvent(std::string("TrainingQueue research: ") + told));
  }
}

// The operator may be killed at any moment of a loan's return.
TEST_F(QueueStory, AKilledOperatorForgetsNoLoan) {
  for (Duration delay = 0ms; delay <= 1s; delay += 250ms) {
    SCOPED_TRACE(ToSeconds(delay));
    StoryWorld again(17);
    again.Apply(kTrainingQueues, "research",
                {{"namespaceSelector", Json::object()}, {"guaranteed", 4}});
    again.Apply(kTrainingQueues, "batch", {{"namespaceSelector", Json::object()}});
    again.Submit("nightly", {{"queue", "batch"}});
    ASSERT_TRUE(again.ReachSizes({{"nightly", 8}}));
    again.Submit("paper", {{"queue", "research"}, {"elastic", {{"maxLearners", 4}}}});
    again.loop.RunFor(delay);
    again.KillOperator();
    ASSERT_TRUE(again.ReachSizes({{"nightly", 4}, {"paper", 4}}));
    EXPECT_FALSE(again.faulty()) << again.Describe();
  }
}

}  // namespace
}  // namespace pliant::operator_sim
