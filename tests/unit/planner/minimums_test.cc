#include <gtest/gtest.h>

#include "tests/unit/planner/builders.h"

// The minimum that counts, and what those read who have less than their share.
namespace pliant::planner {
namespace {

LearnerCount SizeOf(const World& world, const std::string& job) {
  const auto sizes = world.Sizes();
  const auto found = sizes.find(job);
  return found == sizes.end() ? 0 : found->second;
}

class Minimums : public testing::Test {
 protected:
  // Two jobs, submitted with a minimum of one learner, have half of the GPUs each.
  Minimums() {
    for (const char* name : {"mine", "other"}) world.Submit(JobOf(name));
    Settle();
    EXPECT_EQ(SizeOf(world, "mine"), 4);
  }

  void Settle() {
    world.Settle();
    world.Wait(Seconds{60});
    world.Settle();
  }
  void Edit(LearnerCount minimum) {
    world.job("mine").min_learners = minimum;
    Settle();
  }
  std::optional<LearnerCount> Admitted() { return world.job("mine").share.admitted_minimum; }

  World world{Nodes(1, 8)};
};

TEST_F(Minimums, ARaiseTakesNothingFromOthers) {
  Edit(7);
  EXPECT_EQ(SizeOf(world, "mine"), 4);
  EXPECT_EQ(SizeOf(world, "other"), 4);
  EXPECT_EQ(Admitted(), 4) << "it counts within the share";
  EXPECT_EQ(DecisionOn(world.MakePlan(), "other").reason.sentence,
            "4 of 8 GPUs: fair share 1/2 by priority 5000 of 10000 in queue default");
}

TEST_F(Minimums, ARaiseCountsOnceTheShareIsThatLarge) {
  Edit(7);
  world.Finish("other");
  Settle();
  EXPECT_EQ(SizeOf(world, "mine"), 8);
  EXPECT_EQ(Admitted(), 7);
}

TEST_F(Minimums, AMinimumFallsAtOnceAndRisesOnlyWithinTheShare) {
  Edit(4);
  world.job("other").priority = 10'000;
  Settle();
  EXPECT_EQ(SizeOf(world, "mine"), 4) << "what was admitted stays";
  Edit(1);
  EXPECT_EQ(SizeOf(world, "mine"), 3);
  Edit(4);
  EXPECT_EQ(SizeOf(world, "mine"), 3);
  EXPECT_EQ(Admitted(), 3);
}

TEST_F(Minimums, ASuspendedJobWaitsForItsWholeMinimum) {
  Edit(5);
  world.job("mine").suspended = true;
  Settle();
  EXPECT_EQ(Admitted(), std::nullopt);
  world.job("other").min_learners = 4;
  Settle();
  world.job("mine").suspended = false;
  Settle();
  EXPECT_EQ(SizeOf(world, "mine"), 0);
  EXPECT_EQ(DecisionOn(world.MakePlan(), "mine").reason.code, ReasonCode::kQueued);
}

TEST_F(Minimums, AJobOfAnEarlierVersionHasTheMinimumOfItsSpec) {
  world.job("mine").min_learners = 6;
  world.job("mine").share.admitted_minimum.reset();
  Settle();
  EXPECT_EQ(SizeOf(world, "mine"), 6);
  EXPECT_EQ(Admitted(), 6);
  Edit(8);
  EXPECT_EQ(Admitted(), 6);
}

TEST_F(Minimums, TheLimitOfAQueueHolds) {
  world.snapshot.queues = {{.name = "default", .limit_gpus = 6}};
  Settle();
  EXPECT_EQ(SizeOf(world, "mine"), 3);
  Edit(6);
  EXPECT_EQ(SizeOf(world, "mine"), 3);
  EXPECT_EQ(SizeOf(world, "other"), 3);
}

TEST_F(Minimums, AGuaranteeHolds) {
  world.snapshot.queues = {{.name = "default"}, {.name = "research", .guaranteed_gpus = 4}};
  world.Finish("other");
  world.Submit(JobOf("theirs").Queue("research"));
  Settle();
  EXPECT_EQ(SizeOf(world, "theirs"), 4);
  Edit(8);
  EXPECT_EQ(SizeOf(world, "theirs"), 4);
  EXPECT_EQ(Admitted(), 4);
}

TEST_F(Minimums, AJobThatGaveGpusAwayTakesNoneBackForAWhile) {
  world.job("mine").share.yields_until = world.snapshot.now + Seconds{60};
  world.job("mine").max_learners = 2;
  world.Settle();
  EXPECT_EQ(SizeOf(world, "other"), 6);
  world.job("mine").max_learners = 8;
  world.Settle();
  EXPECT_EQ(SizeOf(world, "mine"), 2);
  EXPECT_EQ(SizeOf(world, "other"), 6);
  const Plan plan = world.MakePlan();
  EXPECT_EQ(DecisionOn(plan, "mine").reason.code, ReasonCode::kYields);
  EXPECT_LE(plan.again_at, world.job("mine").share.yields_until);
  world.Wait(Seconds{61});
  world.Settle();
  EXPECT_EQ(SizeOf(world, "mine"), 4);
}

TEST_F(Minimums, AYieldingJobTakesGpusThatNobodyElseWants) {
  world.job("mine").share.yields_until = world.snapshot.now + Seconds{60};
  world.job("other").max_learners = 2;
  world.Settle();
  EXPECT_EQ(SizeOf(world, "mine"), 6);
}

TEST_F(Minimums, AYieldingJobHasItsMinimumAndItsGuarantee) {
  world.job("mine").max_learners = 1;
  Settle();
  world.job("mine").max_learners = 8;
  world.snapshot.queues = {{.name = "default"}, {.name = "research", .guaranteed_gpus = 3}};
  world.job("mine").queue = "research";
  world.job("mine").share.yields_until = world.snapshot.now + Seconds{60};
  world.Settle();
  EXPECT_EQ(SizeOf(world, "mine"), 3);
}

const PlanCase kBelow[] = {
    {.name = "who has less because of others' minimums reads how much, and why",
     .nodes = Nodes(1, 8),
     .jobs = {JobOf("greedy", 7, 8).Has(7, "n00"), JobOf("b").Has(1, "n00")},
     .want = {{"greedy", 7, ReasonCode::kMinimum},
              {"b", 1, ReasonCode::kBelowShare,
               "1 of 8 GPUs: 3 less than its fair share 1/2 by priority 5000 of 10000 in queue "
               "default: minimums of others in this queue are above theirs"}}},
    {.name = "a share that is rounded down is a share",
     .nodes = Nodes(1, 3),
     .jobs = {JobOf("a").Has(2, "n00"), JobOf("b").Has(1, "n00")},
     .want = {{"a", 2, ReasonCode::kFairShare}, {"b", 1, ReasonCode::kFairShare}}},
};

TEST(BelowShare, IsReported) {
  for (const PlanCase& plan_case : kBelow) ExpectPlan(plan_case);
}

const PlanCase kQuotas[] = {
    {.name = "where GPUs move within a full quota, new learners await the end of those that leave",
     .nodes = Nodes(1, 8),
     .jobs = {JobOf("a").Has(8, "n00"), JobOf("b")},
     .want = {{"a", 4, ReasonCode::kQuota}, {"b", 4, ReasonCode::kQuota}},
     .budgets = {{.name_space = "team-a", .gpus = 8}}},
};

TEST(Quotas, CountLearnersThatLeave) {
  for (const PlanCase& plan_case : kQuotas) ExpectPlan(plan_case);
  ClusterSnapshot snapshot = SnapshotOf(kQuotas[0]);
  const auto waiting = [&] {
    return std::ranges::count_if(DecisionOn(MakePlan(snapshot, {}), "b").create,
                                 &NewLearner::waits_for_quota);
  };
  EXPECT_EQ(waiting(), 4);
  snapshot.budgets[0].gpus = 10;
  EXPECT_EQ(waiting(), 2);
  for (int learner = 0; learner < 4; ++learner) {
    snapshot.jobs[0].learners[static_cast<std::size_t>(learner)].state = LearnerState::kLeaving;
  }
  EXPECT_EQ(waiting(), 2) << "the server counts it until its pod has ended";
  snapshot.jobs[0].learners.erase(snapshot.jobs[0].learners.begin());
  EXPECT_EQ(waiting(), 1);
}

}  // namespace
}  // namespace pliant::planner
