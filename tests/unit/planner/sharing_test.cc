#include <gtest/gtest.h>

#include "base/format.h"
#include "tests/unit/planner/builders.h"

// How many learners each job gets, and why.
namespace pliant::planner {
namespace {

const PlanCase kShares[] = {
    {.name = "one job alone gets everything that it requests",
     .nodes = Nodes(2, 4),
     .jobs = {JobOf("a")},
     .want = {{"a", 8, ReasonCode::kMaximum, "8 of 8 GPUs: all that it asks for (maxLearners 8)"}}},
    {.name = "equal jobs share equally",
     .nodes = Nodes(2, 4),
     .jobs = {JobOf("a").Has(8, "n00"), JobOf("b")},
     .want = {{"a", 4}, {"b", 4}}},
    {.name = "twice the priority is twice the share, rounded to the nearest",
     .nodes = Nodes(2, 4),
     .jobs = {JobOf("a"), JobOf("b").Priority(10000)},
     .want = {{"a", 3, ReasonCode::kFairShare,
               "3 of 8 GPUs: fair share 1/3 by priority 5000 of 15000 in queue default"},
              {"b", 5, ReasonCode::kFairShare,
               "5 of 8 GPUs: fair share 2/3 by priority 10000 of 15000 in queue default"}}},
    {.name = "the others get what one job cannot use",
     .nodes = Nodes(2, 4),
     .jobs = {JobOf("a", 1, 2), JobOf("b"), JobOf("c")},
     .want = {{"a", 2, ReasonCode::kMaximum}, {"b", 3}, {"c", 3}}},
    {.name = "of equal claims to the last GPU the older job wins",
     .nodes = Nodes(1, 3),
     .jobs = {JobOf("a").Submitted(Seconds{20}), JobOf("b").Submitted(Seconds{10})},
     .want = {{"a", 1}, {"b", 2}}},
    {.name = "unless the other has it already: changes of equal value are not made",
     .nodes = Nodes(1, 3),
     .jobs = {JobOf("a").Submitted(Seconds{20}).Has(2, "n00"),
              JobOf("b").Submitted(Seconds{10}).Has(1, "n00")},
     .want = {{"a", 2}, {"b", 1}}},
    {.name = "a tie of time falls to the key",
     .nodes = Nodes(1, 3),
     .jobs = {JobOf("b"), JobOf("a")},
     .want = {{"a", 2}, {"b", 1}}},
    {.name = "minimums come before shares",
     .nodes = Nodes(2, 4),
     .jobs = {JobOf("a", 6, 8), JobOf("b")},
     .want =
         {{"a", 6, ReasonCode::kMinimum,
           "6 of 8 GPUs: minLearners 6 is above its fair share 1/2 by priority 5000 of 10000 in "
           "queue default"},
          {"b", 2, ReasonCode::kBelowShare}}},
    {.name = "no GPU at all",
     .nodes = {},
     .jobs = {JobOf("a")},
     .want = {{"a", 0, ReasonCode::kNoNodeFits,
               "no node can run a learner: there is no node with GPUs"}}},
    {.name = "learners of two GPUs: the share counts GPUs",
     .nodes = Nodes(2, 4),
     .jobs = {JobOf("a").GpusEach(2), JobOf("b")},
     .want = {{"a", 2}, {"b", 4}}},
};

TEST(Sharing, FairShare) {
  for (const PlanCase& plan_case : kShares) ExpectPlan(plan_case);
}

const PlanCase kSizes[] = {
    {.name = "9 and 10 learners are no faster than 8 with 32 shards: the rest is lent on",
     .nodes = Nodes(3, 4),
     .jobs = {JobOf("a", 1, 10), JobOf("b", 1, 2)},
     .want =
         {{"a", 8, ReasonCode::kNoFasterSize,
           "8 of 12 GPUs: with 32 logical shards the next larger sizes are no faster; fair share "
           "1/2 by priority 5000 of 10000 in queue default"},
          {"b", 2, ReasonCode::kMaximum}}},
    {.name = "11 are faster",
     .nodes = Nodes(3, 4),
     .jobs = {JobOf("a", 1, 12)},
     .want = {{"a", 11, ReasonCode::kNoFasterSize}}},
    {.name = "too few are left for 11: another job gets them",
     .nodes = Nodes(3, 4),
     .jobs = {JobOf("a", 1, 12), JobOf("b", 1, 16).Priority(1)},
     .want = {{"a", 11, ReasonCode::kNoFasterSize}, {"b", 1, ReasonCode::kMinimum}}},
    {.name = "a job of few shards does not keep GPUs that idle",
     .nodes = Nodes(2, 4),
     .jobs = {JobOf("a").Shards(4), JobOf("b")},
     .want = {{"a", 4, ReasonCode::kShardLimit,
               "4 of 8 GPUs: all that its 4 logical shards can use, though maxLearners is 8"},
              {"b", 4}}},
    {.name = "a program that asked for fewer leaves the rest to others",
     .nodes = Nodes(2, 4),
     .jobs = {JobOf("a").Asks(2), JobOf("b")},
     .want = {{"a", 2, ReasonCode::kProgramAsked, "2 of 8 GPUs: the program asked for 2 learners"},
              {"b", 6, ReasonCode::kBorrowed,
               "6 of 8 GPUs: 2 GPUs that others leave over, fair share 1/2 by priority 5000 of "
               "10000 in queue default"}}},
    {.name = "a program gets its minimum, whatever it asks for",
     .nodes = Nodes(2, 4),
     .jobs = {JobOf("a", 2, 8).Asks(1)},
     .want = {{"a", 2, ReasonCode::kProgramAsked}}},
    {.name = "a program that asks for more gets its maximum",
     .nodes = Nodes(2, 4),
     .jobs = {JobOf("a", 1, 3).Asks(7)},
     .want = {{"a", 3, ReasonCode::kMaximum}}},
    {.name = "three of four shards' learners would wait for the fourth",
     .nodes = Nodes(1, 4),
     .jobs = {JobOf("a", 1, 3).Shards(4)},
     .want = {{"a", 2, ReasonCode::kNoFasterSize}}},
    {.name = "a minimum is given even if a smaller size were as fast",
     .nodes = Nodes(1, 4),
     .jobs = {JobOf("a", 3, 3).Shards(4)},
     .want = {{"a", 3, ReasonCode::kMaximum}}},
};

TEST(Sharing, OnlySizesThatAreFaster) {
  for (const PlanCase& plan_case : kSizes) ExpectPlan(plan_case);
}

const PlanCase kBudgets[] = {
    {.name = "the jobs of a namespace share what its quotas leave them",
     .nodes = Nodes(1, 8),
     .jobs = {JobOf("a").Has(4, "n00"), JobOf("b")},
     .want = {{"a", 2, ReasonCode::kQuota,
               "2 of 8 GPUs: the ResourceQuotas of namespace team-a leave its jobs 4 GPUs; fair "
               "share 1/2 by priority 5000 of 10000 in queue default"},
              {"b", 2, ReasonCode::kQuota}},
     .budgets = {{"team-a", 4}}},
    {.name = "what they leave over is for others",
     .nodes = Nodes(1, 8),
     .jobs = {JobOf("a"), JobOf("b").In("team-b")},
     .want = {{"a", 3, ReasonCode::kQuota}, {"b", 5, ReasonCode::kBorrowed}},
     .budgets = {{"team-a", 3}, {"team-c", 0}}},
    {.name = "a minimum beyond the quota waits, but does not block other jobs",
     .nodes = Nodes(1, 8),
     .jobs = {JobOf("a", 4, 8), JobOf("b", 1, 8).In("team-b").Submitted(Seconds{10})},
     .want = {{"a", 0, ReasonCode::kQuota,
               "waits for 4 GPUs (minLearners 4): the ResourceQuotas of namespace team-a leave its "
               "jobs 3 GPUs"},
              {"b", 8, ReasonCode::kMaximum}},
     .budgets = {{"team-a", 3}}},
    {.name = "a lowered quota ends no learner",
     .nodes = Nodes(1, 8),
     .jobs = {JobOf("a", 1, 6).Has(6, "n00")},
     .want = {{"a", 6, ReasonCode::kMaximum}},
     .budgets = {{"team-a", 2}}},
    {.name = "a learner of several GPUs counts with all of them",
     .nodes = Nodes(1, 8),
     .jobs = {JobOf("a").GpusEach(2)},
     .want = {{"a", 1, ReasonCode::kQuota}},
     .budgets = {{"team-a", 3}}},
};

TEST(Sharing, Budgets) {
  for (const PlanCase& plan_case : kBudgets) ExpectPlan(plan_case);
}

const PlanCase kAdmissions[] = {
    {.name = "jobs shrink to their minimum for one that waits",
     .nodes = Nodes(2, 4),
     .jobs = {JobOf("old", 2, 8).Has(4, "n00").Has(4, "n01"), JobOf("new", 6, 6)},
     .want = {{"old", 2, ReasonCode::kBelowShare}, {"new", 6, ReasonCode::kMaximum}}},
    {.name = "but not further",
     .nodes = Nodes(2, 4),
     .jobs = {JobOf("old", 3, 8).Has(4, "n00").Has(4, "n01"), JobOf("new", 6, 6)},
     .want =
         {{"old", 8, ReasonCode::kMaximum},
          {"new", 0, ReasonCode::kQueued,
           "waits for 6 GPUs (minLearners 6): 5 can be had at once, the jobs that run cannot be "
           "shrunk further"}}},
    {.name = "the first in the queue is not overtaken by a smaller one",
     .nodes = Nodes(1, 4),
     .jobs = {JobOf("runs", 2, 4).Has(4, "n00"), JobOf("large", 4, 4).Submitted(Seconds{10}),
              JobOf("small", 1, 1).Submitted(Seconds{20})},
     .want = {{"runs", 4, ReasonCode::kMaximum},
              {"large", 0, ReasonCode::kQueued},
              {"small", 0, ReasonCode::kQueuedBehind,
               "waits for 1 GPU (minLearners 1): 1 job is before it in queue default"}}},
    {.name = "idle GPUs that are too few for the first job go to the jobs behind it",
     .nodes = Nodes(8, 8),
     .jobs = {JobOf("a", 8, 8).Has(8, "n00"),
              JobOf("huge", 60, 60).Shards(64).Submitted(Seconds{10}),
              JobOf("small", 1, 8).Submitted(Seconds{20})},
     .want = {{"a", 8, ReasonCode::kMaximum},
              {"huge", 0, ReasonCode::kQueued},
              {"small", 8, ReasonCode::kMaximum}}},
    {.name = "but no running job is shrunk for them",
     .nodes = Nodes(1, 8),
     .jobs = {JobOf("runs", 2, 6).Has(6, "n00"), JobOf("large", 8, 8).Submitted(Seconds{10}),
              JobOf("medium", 3, 3).Submitted(Seconds{20}),
              JobOf("small", 2, 2).Submitted(Seconds{30})},
     .want = {{"runs", 6, ReasonCode::kMaximum},
              {"large", 0, ReasonCode::kQueued},
              {"medium", 0, ReasonCode::kQueuedBehind},
              {"small", 2, ReasonCode::kMaximum}}},
    {.name = "once the first has waited for an hour, it is kept for that one",
     .nodes = Nodes(1, 8),
     .jobs = {JobOf("a", 4, 4).Has(4, "n00"), JobOf("large", 6, 6).Submitted(Seconds{10}),
              JobOf("small", 1, 4).Submitted(Seconds{20})},
     .want = {{"a", 4, ReasonCode::kMaximum},
              {"large", 0, ReasonCode::kQueued},
              {"small", 0, ReasonCode::kQueuedBehind}},
     .now = Seconds{3610}},
    {.name = "for half an hour",
     .nodes = Nodes(1, 8),
     .jobs = {JobOf("a", 4, 4).Has(4, "n00"), JobOf("large", 6, 6).Submitted(Seconds{10}),
              JobOf("small", 1, 4).Submitted(Seconds{20})},
     .want = {{"a", 4, ReasonCode::kMaximum},
              {"large", 0, ReasonCode::kQueued},
              {"small", 4, ReasonCode::kMaximum}},
     .now = Seconds{5410}},
    {.name = "least attained service by priority comes first, whenever it was submitted",
     .nodes = Nodes(1, 4),
     .jobs = {JobOf("a", 4, 4).Attained(100).Submitted(Seconds{10}),
              JobOf("b", 4, 4).Attained(150).Priority(10000).Submitted(Seconds{20})},
     .want = {{"a", 0, ReasonCode::kQueued}, {"b", 4, ReasonCode::kMaximum}}},
    {.name = "learners move together so that a large one fits",
     .nodes = Nodes(2, 8),
     .jobs = {JobOf("s", 8, 8).Has(4, "n00").Has(4, "n01"), JobOf("l", 1, 1).GpusEach(8)},
     .want = {{"s", 8, ReasonCode::kMaximum}, {"l", 1, ReasonCode::kMaximum}}},
    {.name = "not those of a job that was resized a moment ago",
     .nodes = Nodes(2, 8),
     .jobs = {JobOf("s", 8, 8).Has(4, "n00").Has(4, "n01").Resized(Seconds{3590}),
              JobOf("l", 1, 1).GpusEach(8)},
     .want =
         {{"s", 8, ReasonCode::kMaximum},
          {"l", 0, ReasonCode::kQueued,
           "waits for 8 GPUs (minLearners 1): 0 can be had at once, the jobs that run cannot be "
           "shrunk further"}}},
    {.name = "what the first job cannot take is not kept for it",
     .nodes = Nodes(2, 8),
     .jobs = {JobOf("a", 7, 7).Has(7, "n00"), JobOf("b", 6, 6).Has(6, "n01"),
              JobOf("large", 1, 1).GpusEach(8).Submitted(Seconds{10}),
              JobOf("small", 2, 2).Submitted(Seconds{20}),
              JobOf("tiny", 1, 1).Submitted(Seconds{30})},
     .want = {{"a", 7, ReasonCode::kMaximum},
              {"b", 6, ReasonCode::kMaximum},
              {"large", 0, ReasonCode::kQueued},
              {"small", 2, ReasonCode::kMaximum},
              {"tiny", 1, ReasonCode::kMaximum}}},
    {.name = "but after an hour one node is, so that all of its GPUs come free in the end",
     .nodes = Nodes(2, 8),
     .jobs = {JobOf("a", 7, 7).Has(7, "n00"), JobOf("b", 6, 6).Has(6, "n01"),
              JobOf("large", 1, 1).GpusEach(8).Submitted(Seconds{10}),
              JobOf("small", 2, 2).Submitted(Seconds{20}),
              JobOf("tiny", 1, 1).Submitted(Seconds{30})},
     .want = {{"a", 7, ReasonCode::kMaximum},
              {"b", 6, ReasonCode::kMaximum},
              {"large", 0, ReasonCode::kQueued},
              {"small", 0, ReasonCode::kQueuedBehind},
              {"tiny", 1, ReasonCode::kMaximum}},
     .now = Seconds{3610}},
    {.name = "a job that can never run blocks no other job",
     .nodes = Nodes(1, 4),
     .jobs = {JobOf("huge", 5, 8), JobOf("small", 1, 4).Submitted(Seconds{10})},
     .want =
         {{"huge", 0, ReasonCode::kTooLarge,
           "its minimum of 5 GPUs (minLearners 5) would not fit if nobody else ran: the nodes that "
           "it can use take 4 learners"},
          {"small", 4, ReasonCode::kMaximum}}},
    {.name = "a minimum that was lost is not taken from a job that has its own",
     .nodes = Nodes(1, 4),
     .jobs = {JobOf("a", 4, 4).Has(2, "n00").Attained(1),
              JobOf("b", 2, 4).Has(2, "n00").Attained(9)},
     .want =
         {{"a", 2, ReasonCode::kBelowMinimum,
           "2 of 4 GPUs: its minimum of 4 GPUs (minLearners 4) is no longer free; keeps what it "
           "has for a while"},
          {"b", 2}}},
};

TEST(Sharing, AdmissionAndMinimums) {
  for (const PlanCase& plan_case : kAdmissions) ExpectPlan(plan_case);
}

const PlanCase kStability[] = {
    {.name = "a job in its cooldown is not shrunk for another's share",
     .nodes = Nodes(2, 4),
     .jobs = {JobOf("a").Has(4, "n00").Has(2, "n01").Resized(Seconds{80}),
              JobOf("b").Has(2, "n01")},
     .want = {{"a", 6, ReasonCode::kCooldown}, {"b", 2}},
     .now = Seconds{100}},
    {.name = "nor grown",
     .nodes = Nodes(2, 4),
     .jobs = {JobOf("a").Has(3, "n00").Resized(Seconds{80})},
     .want =
         {{"a", 3, ReasonCode::kCooldown,
           "3 of 8 GPUs: resized a moment ago, left alone until 2026-11-20T00:01:50Z; fair would "
           "be 8"}},
     .now = Seconds{100}},
    {.name = "but its learners that were lost are replaced",
     .nodes = Nodes(2, 4),
     .jobs = {JobOf("a", 1, 4)
                  .Has(4, "n00")
                  .Has(1, "n00", LearnerState::kLeaving)
                  .Resized(Seconds{80})},
     .want = {{"a", 4, ReasonCode::kMaximum}},
     .now = Seconds{100}},
    {.name = "and it is shrunk for another's minimum",
     .nodes = Nodes(2, 4),
     .jobs = {JobOf("a").Has(4, "n00").Has(4, "n01").Resized(Seconds{80}), JobOf("b", 2, 8)},
     .want = {{"a", 4}, {"b", 4}},
     .now = Seconds{100}},
    {.name = "a cooldown that would not help a minimum is kept",
     .nodes = Nodes(2, 4),
     .jobs = {JobOf("a", 7, 8).Has(4, "n00").Has(3, "n01").Resized(Seconds{80}), JobOf("b", 2, 8)},
     .want = {{"a", 7, ReasonCode::kCooldown}, {"b", 0, ReasonCode::kQueued}},
     .now = Seconds{100}},
    {.name = "a fresh job is not shrunk even for a minimum",
     .nodes = Nodes(1, 4),
     .jobs = {JobOf("a").Has(4, "n00").Started(Seconds{60}, Seconds{60}), JobOf("b")},
     .want =
         {{"a", 4, ReasonCode::kMinRuntime,
           "4 of 4 GPUs: not shrunk before 2026-11-20T00:02:00Z (minRuntimeSeconds); fair would be "
           "2"},
          {"b", 0, ReasonCode::kQueued}},
     .now = Seconds{100}},
    {.name = "but may grow",
     .nodes = Nodes(2, 4),
     .jobs = {JobOf("a").Has(4, "n00").Started(Seconds{60}, Seconds{60})},
     .want = {{"a", 8, ReasonCode::kMaximum}},
     .now = Seconds{100}},
    {.name = "after its minimum runtime it shares like everybody",
     .nodes = Nodes(1, 4),
     .jobs = {JobOf("a").Has(4, "n00").Started(Seconds{60}, Seconds{60}), JobOf("b")},
     .want = {{"a", 2}, {"b", 2}},
     .now = Seconds{120}},
    {.name = "a maximum that was lowered acts at once",
     .nodes = Nodes(2, 4),
     .jobs = {JobOf("a", 1, 2).Has(4, "n00").Resized(Seconds{80})},
     .want = {{"a", 2, ReasonCode::kMaximum}},
     .now = Seconds{100}},
};

TEST(Sharing, Stability) {
  for (const PlanCase& plan_case : kStability) ExpectPlan(plan_case);
}

const PlanCase kOthers[] = {
    {.name = "suspended and finished jobs get nothing and give all back",
     .nodes = Nodes(1, 4),
     .jobs = {JobOf("a").Has(4, "n00").Suspended(), JobOf("b", 1, 4)},
     .want = {{"a", 0, ReasonCode::kSuspended}, {"b", 4, ReasonCode::kMaximum}}},
};

TEST(Sharing, JobsThatDoNotTakePart) {
  for (const PlanCase& plan_case : kOthers) ExpectPlan(plan_case);
}

// Reclaims that fail are bounded, because each looks at all jobs; but those of one queue do not use
// up what another one may try.
TEST(Sharing, FailedReclaimsOfOneQueueStopNoOther) {
  PlanCase plan_case{
      .nodes = Nodes(2, 40),
      .jobs = {JobOf("holder", 40, 40).Shards(64).Queue("a-holder").Has(40, "n00"),
               JobOf("borrower", 40, 40).Shards(64).Queue("d-borrower").Has(40, "n01")},
      .queues = {{.name = "a-holder", .guaranteed_gpus = 40},
                 {.name = "b-blocked", .guaranteed_gpus = 40},
                 {.name = "c-owner", .guaranteed_gpus = 4},
                 {.name = "d-borrower"}}};
  plan_case.nodes[0].labels["pool"] = "first";
  plan_case.nodes[1].labels["pool"] = "second";
  for (int min = 1; min <= 40; ++min) {
    plan_case.jobs.push_back(JobOf(Format("blocked-{:02}", min), min, min)
                                 .Shards(64)
                                 .Queue("b-blocked")
                                 .OnlyOn("first"));
  }
  plan_case.jobs.push_back(JobOf("owner", 4, 4).Queue("c-owner").OnlyOn("second"));
  const Plan plan = MakePlan(SnapshotOf(plan_case), {});
  EXPECT_EQ(DecisionOn(plan, "owner").to, 4);
}

}  // namespace
}  // namespace pliant::planner
