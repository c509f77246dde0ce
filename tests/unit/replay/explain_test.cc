#include "operator/replay/explain.h"

#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/planner/builders.h"

namespace pliant::replay {
namespace {

using planner::GpuNode;
using planner::JobOf;
using planner::kStart;
using planner::Seconds;
using testing::HasSubstr;

// Two jobs run in queue research, three wait, one of them suspended; another queue has one.
DebugSnapshot ABusyQueue() {
  planner::ClusterSnapshot snapshot{.now = kStart + Seconds{3600},
                                    .nodes = {GpuNode("gpu-1", 8), GpuNode("gpu-2", 4)},
                                    .queues = {{.name = "batch", .weight = 50},
                                               {.name = "research",
                                                .weight = 150,
                                                .guaranteed_gpus = 6,
                                                .limit_gpus = 10,
                                                .policy = planner::QueuePolicy::kPriority}},
                                    .pools = {{.name = "default", .reserved_gpus = 2}}};
  const auto research = [](JobOf job) { return job.Queue("research"); };
  for (const JobOf& job : {research(JobOf("high", 4, 8).Priority(9000).Has(6, "gpu-1")),
                           research(JobOf("late", 4, 4).Priority(6000).Submitted(Seconds{100})),
                           research(JobOf("low", 2, 8).Priority(1000).Has(2, "gpu-1")),
                           research(JobOf("off", 1, 1).Suspended()),
                           research(JobOf("urgent", 4, 4).Priority(8000).Submitted(Seconds{200})),
                           JobOf("other", 2, 2).Queue("batch").Has(2, "gpu-2")}) {
    snapshot.jobs.push_back(job.view);
  }
  DebugSnapshot debug{.snapshot = snapshot};
  debug.plan = planner::MakePlan(snapshot, debug.policy);
  for (planner::Decision& decision : debug.plan->decisions) {
    decision.reason.sentence = "why " + decision.job.name + " is so";
  }
  debug.plan->queues[1].sentence = "why it has 8";
  return debug;
}

TEST(Explain, SaysAllThatDecidesForOneJob) {
  const auto text = Explain(ABusyQueue(), "team-a/late");
  ASSERT_TRUE(text) << text.error();
  EXPECT_EQ(*text, R"(job team-a/late: 0 learners now, 0 planned (0 GPUs)
  QueuedBehind: why late is so
  its share: 0 GPUs, which gives 0 learners; it can use 4 learners
  its spec: priority 6000, minLearners 4, maxLearners 4, gpusPerLearner 1, 32 logical shards, Bitwise

queue research of pool default: Shared: why it has 8
  its share: 8 GPUs; its jobs have 8 GPUs and can use 10 GPUs; borrowed 0, lent 0
  its spec: weight 150, guarantee 6 GPUs, limit 10 GPUs, lends all, policy Priority

pool default: 12 GPUs to share on 2 nodes; jobs have 10, other pods 0, and 2 are reserved

jobs of the queue, in the order in which they are admitted:
   JOB            NOW  PLANNED  GPUS  SHARE  PRIORITY  REASON
   team-a/high      6        6     6      6      9000  Reserved      why high is so
   team-a/low       2        2     2      2      1000  Reserved      why low is so
   team-a/urgent    0        0     0      0      8000  Reserved      why urgent is so
>  team-a/late      0        0     0      0      6000  QueuedBehind  why late is so
   team-a/off       0        0     0      0      5000  Suspended     why off is so
)");
}

TEST(Explain, SaysWhichLearnersComeAndGo) {
  DebugSnapshot debug = ABusyQueue();
  planner::Decision& decision = debug.plan->decisions[0];
  decision.drop = {"high-1", "high-2"};
  decision.create = {{"gpu-2"}};
  decision.cap = {{.learners = 1, .until = kStart, .strikes = 3}};
  const auto text = Explain(debug, "team-a/high");
  ASSERT_TRUE(text) << text.error();
  EXPECT_THAT(*text, HasSubstr("  leaves: high-1, high-2\n  new learners on: gpu-2\n"));
  EXPECT_THAT(*text, HasSubstr("  learners did not start, 3 times in a row: no more than 1 learner "
                               "before 2026-11-20T00:00:00Z\n"));
}

TEST(Explain, AQueueOrPoolThatDoesNotExistIsSaid) {
  planner::ClusterSnapshot snapshot{.now = kStart};
  snapshot.jobs = {JobOf("lost").Queue("gone").view};
  snapshot.jobs[0].pool = "lost-pool";
  const auto text = Explain(snapshot, planner::MakePlan(snapshot, {}), {"team-a", "lost"});
  ASSERT_TRUE(text) << text.error();
  EXPECT_THAT(*text, HasSubstr("  there is no such queue in this pool\n"));
  EXPECT_THAT(*text, HasSubstr("pool lost-pool: there is no such pool\n"));
}

TEST(Explain, TheBuiltInQueueNeedsNoObject) {
  planner::ClusterSnapshot snapshot{.now = kStart, .nodes = {GpuNode("gpu-1", 8)}};
  snapshot.jobs = {JobOf("simple").view};
  const auto text = Explain(snapshot, planner::MakePlan(snapshot, {}), {"team-a", "simple"});
  ASSERT_TRUE(text) << text.error();
  EXPECT_THAT(*text, HasSubstr("  its spec: weight 100, guarantee 0 GPUs, limit none, lends all, "
                               "policy FairShare\n"));
}

TEST(Explain, RefusesWhatIsNoJob) {
  struct Case {
    std::string job;
    ErrorCode code;
  };
  const Case kCases[] = {
      {"team-a/nobody", ErrorCode::kNotFound},
      {"team-b/late", ErrorCode::kNotFound},
      {"", ErrorCode::kInvalid},
      {"late", ErrorCode::kInvalid},
      {"/late", ErrorCode::kInvalid},
      {"team-a/", ErrorCode::kInvalid},
      {"team-a/late/x", ErrorCode::kInvalid},
      {"team-a/la te", ErrorCode::kInvalid},
      {"team-a/\x1b[2J", ErrorCode::kInvalid},
      {"a/" + std::string(254, 'b'), ErrorCode::kInvalid},
  };
  const DebugSnapshot debug = ABusyQueue();
  for (const Case& c : kCases) {
    const auto text = Explain(debug, c.job);
    ASSERT_FALSE(text) << c.job;
    EXPECT_EQ(text.error().code, c.code) << c.job;
  }
  EXPECT_THAT(Explain(debug, "team-a/nobody").error().message,
              HasSubstr("job team-a/nobody is not in the last plan"));
}

}  // namespace
}  // namespace pliant::replay
