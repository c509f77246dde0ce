#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/planner/builders.h"

// Stories of one cluster over time, as a user sees them.
namespace pliant::planner {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::Pair;

TEST(PlannerStory, TwoTrainingsShareEightGpus) {
  World world(Nodes(2, 4));
  world.Submit(JobOf("training-1"));
  world.Settle();
  EXPECT_THAT(world.Sizes(), ElementsAre(Pair("training-1", 8)));
  EXPECT_EQ(DecisionOn(world.MakePlan(), "training-1").reason.sentence,
            "8 of 8 GPUs: all that it asks for (maxLearners 8)");

  world.Wait(Seconds{60});
  world.Submit(JobOf("training-2"));
  world.Settle();
  EXPECT_THAT(world.Sizes(), ElementsAre(Pair("training-1", 4), Pair("training-2", 4)));
  EXPECT_EQ(DecisionOn(world.MakePlan(), "training-2").reason.sentence,
            "4 of 8 GPUs: fair share 1/2 by priority 5000 of 10000 in queue default");

  world.Wait(Seconds{60});
  world.job("training-2").priority = 10000;
  world.Settle();
  EXPECT_THAT(world.Sizes(), ElementsAre(Pair("training-1", 3), Pair("training-2", 5)));
  EXPECT_EQ(DecisionOn(world.MakePlan(), "training-1").reason.sentence,
            "3 of 8 GPUs: fair share 1/3 by priority 5000 of 15000 in queue default");

  world.Wait(Seconds{60});
  world.Finish("training-1");
  world.Settle();
  EXPECT_THAT(world.Sizes(), ElementsAre(Pair("training-2", 8)));
}

TEST(PlannerStory, APriorityEditedDuringTheCooldownActsWhenItEnds) {
  World world(Nodes(2, 4));
  world.Submit(JobOf("training-1"));
  world.Settle();
  world.Wait(Seconds{60});
  world.Submit(JobOf("training-2"));
  world.Settle();

  world.Wait(Seconds{10});
  world.job("training-2").priority = 10000;
  const Plan plan = world.MakePlan();
  EXPECT_EQ(DecisionOn(plan, "training-1").to, 4);
  EXPECT_EQ(DecisionOn(plan, "training-1").entitlement, 3);
  EXPECT_EQ(DecisionOn(plan, "training-1").reason.code, ReasonCode::kCooldown);
  EXPECT_EQ(
      DecisionOn(plan, "training-1").reason.sentence,
      "4 of 8 GPUs: resized a moment ago, left alone until 2026-11-20T00:01:30Z; fair would be 3");
  ASSERT_EQ(plan.again_at, kStart + Seconds{90});

  world.snapshot.now = *plan.again_at;
  world.Settle();
  EXPECT_THAT(world.Sizes(), ElementsAre(Pair("training-1", 3), Pair("training-2", 5)));
}

// No decision changes while pods come and go: the same snapshot, partly carried out, leads to the
// same end.
TEST(PlannerStory, GpusOfLeaversAreGivenOnWhenTheirPodsHaveEnded) {
  World world(Nodes(2, 4));
  world.Submit(JobOf("old"));
  world.Settle();
  world.Wait(Seconds{60});
  world.Submit(JobOf("new"));

  world.CarryOut(world.MakePlan());  // 4 learners leave, 4 are created, and no GPU is free yet
  Plan plan = world.MakePlan();
  EXPECT_TRUE(plan.gates_open.empty());
  for (const Decision& decision : plan.decisions)
    EXPECT_TRUE(decision.ChangesNothing()) << decision;

  auto& leavers = world.job("old").learners;
  leavers.erase(std::ranges::find(leavers, LearnerState::kLeaving, &LearnerView::state));
  plan = world.MakePlan();
  ASSERT_EQ(plan.gates_open.size(), 1u);
  EXPECT_EQ(plan.gates_open[0].job.name, "new");
  world.CarryOut(plan);
  EXPECT_TRUE(world.MakePlan().gates_open.empty()) << "the GPU is taken by a starting pod now";
  world.Settle();
  EXPECT_THAT(world.Sizes(), ElementsAre(Pair("new", 4), Pair("old", 4)));
}

TEST(PlannerStory, AJobWhoseLearnersAllFailedKeepsItsPlace) {
  World world(Nodes(1, 4));
  world.Submit(JobOf("victim", 4, 4));
  world.Settle();
  world.Wait(Seconds{60});
  world.Submit(JobOf("waiting", 1, 4));
  world.Settle();
  EXPECT_THAT(world.Sizes(), ElementsAre(Pair("victim", 4)));
  world.job("victim").learners.clear();
  world.Settle();
  EXPECT_THAT(world.Sizes(), ElementsAre(Pair("victim", 4)));
}

TEST(PlannerStory, SuspendingFreesTheGpusAndResumingGetsThemBack) {
  World world(Nodes(2, 4));
  world.Submit(JobOf("a"));
  world.Submit(JobOf("b"));
  world.Settle();
  EXPECT_THAT(world.Sizes(), ElementsAre(Pair("a", 4), Pair("b", 4)));
  world.Wait(Seconds{60});
  world.job("a").suspended = true;
  world.Settle();
  EXPECT_THAT(world.Sizes(), ElementsAre(Pair("b", 8)));
  world.Wait(Seconds{60});
  world.job("a").suspended = false;
  world.Settle();
  EXPECT_THAT(world.Sizes(), ElementsAre(Pair("a", 4), Pair("b", 4)));
}

TEST(PlannerStory, AGrantThatDoesNotStartIsWithdrawnForAGrowingTime) {
  World world(Nodes(1, 4));
  world.Submit(JobOf("broken", 1, 4));
  world.CarryOut(world.MakePlan());
  world.CarryOut(world.MakePlan());  // gates open
  ASSERT_EQ(world.job("broken").learners.front().state, LearnerState::kStarting);
  EXPECT_EQ(world.MakePlan().again_at, kStart + Seconds{120});

  world.Wait(Seconds{120});
  Plan plan = world.MakePlan();
  EXPECT_EQ(DecisionOn(plan, "broken").to, 0);
  EXPECT_EQ(DecisionOn(plan, "broken").drop.size(), 4u);
  EXPECT_EQ(DecisionOn(plan, "broken").reason.code, ReasonCode::kGrantWithdrawn);
  EXPECT_EQ(DecisionOn(plan, "broken").reason.sentence,
            "its learners were granted GPUs but did not start in time; tried again at "
            "2026-11-20T00:03:00Z");
  EXPECT_EQ(DecisionOn(plan, "broken").cap,
            (DemandCap{.learners = 0, .until = kStart + Seconds{180}, .strikes = 1}));
  world.CarryOut(plan);
  world.EndLeavers();
  world.Submit(JobOf("healthy", 1, 4));
  world.Settle();
  EXPECT_THAT(world.Sizes(), ElementsAre(Pair("healthy", 4)));

  world.snapshot.now = kStart + Seconds{180};
  plan = world.MakePlan();
  EXPECT_EQ(DecisionOn(plan, "broken").to, 2) << "tried again in addition to the other";
  world.CarryOut(plan);
  world.EndLeavers();
  world.CarryOut(world.MakePlan());
  world.Wait(Seconds{120});
  plan = world.MakePlan();
  EXPECT_EQ(DecisionOn(plan, "broken").cap,
            (DemandCap{.learners = 0, .until = kStart + Seconds{300 + 120}, .strikes = 2}));
  world.CarryOut(plan);

  world.snapshot.now = kStart + Seconds{420};
  world.Settle();  // this time they start
  EXPECT_EQ(DecisionOn(world.MakePlan(), "broken").cap, std::nullopt) << "its strikes were cleared";
}

// Seen: a job that needs two learners kept one for 37 s, and its back-off was doubled.
TEST(PlannerStory, AUselessGrantIsWithdrawnWholeAndOnce) {
  World world(Nodes(1, 8));
  world.Submit(JobOf("pair", 2, 4));
  world.CarryOut(world.MakePlan());
  world.CarryOut(world.MakePlan());  // gates open
  world.job("pair").learners[3].since += Seconds{37};
  world.Wait(Seconds{120});
  Plan plan = world.MakePlan();
  EXPECT_EQ(DecisionOn(plan, "pair").to, 0);
  EXPECT_EQ(DecisionOn(plan, "pair").cap,
            (DemandCap{.learners = 0, .until = kStart + Seconds{180}, .strikes = 1}));
}

TEST(PlannerStory, LearnersOfOneGrantAreOneFailure) {
  World world(Nodes(1, 8));
  JobOf job("a", 1, 4);
  job.Has(1, "n00").Has(3, "n00", LearnerState::kStarting);
  job.view.learners[3].since += Seconds{-20};
  job.view.learners[3].unschedulable = true;  // 20 s are enough for it
  job.view.learners[1].since = job.view.learners[2].since = kStart;
  world.Submit(job);
  Plan plan = world.MakePlan();
  const DemandCap first{.learners = 3, .until = kStart + Seconds{60}, .strikes = 1};
  EXPECT_EQ(DecisionOn(plan, "a").cap, first);
  EXPECT_EQ(DecisionOn(plan, "a").to, 3) << "soon after the scheduler's word";
  world.CarryOut(plan);
  world.Wait(Seconds{50});
  for (const int learner : {1, 2}) {
    world.job("a").learners[static_cast<std::size_t>(learner)].unschedulable = true;
  }
  plan = world.MakePlan();
  EXPECT_EQ(DecisionOn(plan, "a").to, 1);
  EXPECT_EQ(DecisionOn(plan, "a").cap,
            (DemandCap{.learners = 1, .until = kStart + Seconds{60}, .strikes = 1}));
}

// A quota, for example, allows the job two pods: the GPUs of the others go to another job.
TEST(PlannerStory, AGrantWhosePodsAreRefusedIsWithdrawnInTheJobsOwnTime) {
  World world(Nodes(1, 8));
  world.Submit(JobOf("limited"));
  world.Submit(JobOf("other"));
  world.Settle();
  world.job("limited").learners.resize(2);
  world.job("limited").start_timeout = Seconds{30};
  world.job("limited").refused_since = world.snapshot.now;
  world.Wait(Seconds{29});
  Plan plan = world.MakePlan();
  EXPECT_EQ(DecisionOn(plan, "limited").to, 4);
  EXPECT_EQ(DecisionOn(plan, "other").to, 4);
  EXPECT_EQ(plan.again_at, kStart + Seconds{30});

  world.Wait(Seconds{1});
  plan = world.MakePlan();
  EXPECT_EQ(DecisionOn(plan, "limited").to, 2);
  EXPECT_EQ(DecisionOn(plan, "limited").reason.code, ReasonCode::kGrantWithdrawn);
  EXPECT_EQ(DecisionOn(plan, "limited").cap,
            (DemandCap{.learners = 2, .until = kStart + Seconds{90}, .strikes = 1}));
  EXPECT_EQ(DecisionOn(plan, "other").to, 6);

  // The server refuses the next grant, too.
  world.job("limited").refused_since.reset();
  world.CarryOut(plan);
  world.snapshot.now = kStart + Seconds{90};
  EXPECT_EQ(DecisionOn(world.MakePlan(), "limited").to, 4);
  world.job("limited").refused_since = world.snapshot.now;
  world.Wait(Seconds{30});
  EXPECT_EQ(DecisionOn(world.MakePlan(), "limited").cap,
            (DemandCap{.learners = 2, .until = kStart + Seconds{240}, .strikes = 2}));
}

TEST(PlannerStory, ALearnerWhoseGateIsRefusedIsWithdrawnAndOneThatWaitsIsNot) {
  World world(Nodes(1, 8));
  JobOf job("a");
  job.Has(2, "n00").Has(2, "n00", LearnerState::kGated);
  job.view.learners[2].refused = true;
  job.view.refused_since = kStart;
  world.Submit(job);
  world.Wait(Seconds{119});
  EXPECT_THAT(DecisionOn(world.MakePlan(), "a").drop, IsEmpty());
  world.Wait(Seconds{1});
  const Plan plan = world.MakePlan();
  EXPECT_THAT(DecisionOn(plan, "a").drop, ElementsAre("a-2"));
  EXPECT_EQ(DecisionOn(plan, "a").to, 3);
}

TEST(PlannerStory, AJobThatLostItsNodeIsReleasedAfterAWhile) {
  World world(Nodes(2, 4));
  world.Submit(JobOf("wide", 8, 8));
  world.Settle();
  world.snapshot.nodes[1].ready = false;
  std::erase_if(world.job("wide").learners,
                [](const LearnerView& learner) { return learner.node == "n01"; });
  world.job("wide").share.below_minimum_since = world.snapshot.now;
  world.Wait(Seconds{299});
  EXPECT_EQ(DecisionOn(world.MakePlan(), "wide").to, 4);
  EXPECT_EQ(DecisionOn(world.MakePlan(), "wide").reason.code, ReasonCode::kBelowMinimum);
  EXPECT_EQ(world.MakePlan().again_at, kStart + Seconds{300});
  world.Wait(Seconds{1});
  EXPECT_EQ(DecisionOn(world.MakePlan(), "wide").to, 0);
  EXPECT_EQ(DecisionOn(world.MakePlan(), "wide").reason.code, ReasonCode::kReleased);
  world.Settle();
  EXPECT_THAT(world.Sizes(), ElementsAre());
  world.snapshot.nodes[1].ready = true;
  world.job("wide").share.below_minimum_since.reset();
  world.Settle();
  EXPECT_THAT(world.Sizes(), ElementsAre(Pair("wide", 8)));
}

}  // namespace
}  // namespace pliant::planner
