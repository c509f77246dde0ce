#include "operator/controller/rounds/queue_status.h"

#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "tests/unit/controller/job_fixture.h"

namespace pliant::controller {
namespace {

using enum api::ConditionStatus;

api::TrainingQueue Queue(api::TrainingQueueSpec spec) {
  api::TrainingQueue queue{.spec = std::move(spec)};
  queue.meta.name = "q";
  queue.meta.generation = 3;
  return queue;
}

struct QueueCase {
  std::string name;
  api::TrainingQueue queue;
  planner::QueueShare share;
  std::string condition;  // type=status reason: message
};

std::string Text(const std::vector<api::Condition>& conditions, const std::string& type) {
  for (const api::Condition& each : conditions) {
    if (each.type != type) continue;
    return type + "=" + std::string(ToString(each.status)) + " " + each.reason + ": " +
           each.message;
  }
  return type + " is absent";
}

api::TrainingQueue Unreadable() {
  api::TrainingQueue queue = Queue({});
  queue.unreadable = "spec.weight: too large";
  return queue;
}

const QueueCase kQueues[] = {
    {"a queue as it should be", Queue({}), {}, "Active=True Active: jobs are admitted"},
    {"no guarantee, no condition", Queue({}), {}, "GuaranteeMet is absent"},
    {"stopped",
     Queue({.stop = api::QueueStop::kHold}),
     {},
     "Active=False Held: spec.stop is Hold: no job is admitted, running ones continue"},
    {"drained",
     Queue({.stop = api::QueueStop::kDrain}),
     {},
     "Active=False Drained: spec.stop is Drain: its jobs are checkpointed and wait"},
    {"of a pool that does not exist",
     Queue({.pool = "gone"}),
     {},
     "Active=False PoolMissing: spec.pool: there is no GpuPool gone; create it, or create a queue "
     "of another pool"},
    {"not understood",
     Unreadable(),
     {},
     "Active=False NotUnderstood: spec.weight: too large; until this is corrected the previous "
     "spec "
     "applies"},
    {"its guarantee is met",
     Queue({.guaranteed = 4}),
     {.state = planner::QueueState::kServed},
     "GuaranteeMet=True Met: its jobs have what is guaranteed, as far as they can use it"},
    {"and not met",
     Queue({.guaranteed = 4}),
     {.state = planner::QueueState::kBelowGuarantee, .sentence = "2 GPUs of 4 guaranteed ones"},
     "GuaranteeMet=False BelowGuarantee: 2 GPUs of 4 guaranteed ones"},
    {"more is guaranteed than there is",
     Queue({.guaranteed = 9}),
     {},
     "GuaranteeMet=False GuaranteesBeyondCapacity: spec.guaranteed: the queues of pool default are "
     "guaranteed 9 GPUs together, and it has 7; lower some of them, or add nodes"},
};

TEST(QueueStatus, NamesFieldAndRemedy) {
  for (const QueueCase& each : kQueues) {
    SCOPED_TRACE(each.name);
    planner::QueueShare share = each.share;
    share.queue = "q";
    const planner::ClusterSnapshot snapshot{
        .queues = {{.name = "q",
                    .pool = each.queue.spec.pool,
                    .guaranteed_gpus = each.queue.spec.guaranteed}},
        .pools = {{.reserved_gpus = 1}}};
    const planner::Plan plan{.queues = {share}, .pools = {{.pool = "default", .capacity = 8}}};
    const api::TrainingQueueStatus status = StatusOf(each.queue, {snapshot, plan}, At(7.5));
    const std::string type = each.condition.substr(0, each.condition.find_first_of("= "));
    EXPECT_EQ(Text(status.conditions, type), each.condition);
    for (const api::Condition& condition : status.conditions) {
      EXPECT_EQ(condition.observed_generation, 3);
      EXPECT_EQ(condition.last_transition, At(7));
    }
  }
}

TEST(QueueStatus, HasTheNumbersOfThePlan) {
  const planner::Plan plan{.queues = {{.queue = "q",
                                       .demand = 9,
                                       .entitled = 8,
                                       .allocated = 7,
                                       .borrowed = 6,
                                       .lent = 5,
                                       .running = 4,
                                       .waiting = 3,
                                       .sentence = "why"}}};
  api::TrainingQueueStatus status = StatusOf(Queue({}), {{}, plan}, At(1));
  status.conditions.clear();
  EXPECT_EQ(status, (api::TrainingQueueStatus{.observed_generation = 3,
                                              .demand = 9,
                                              .entitled = 8,
                                              .allocated = 7,
                                              .borrowed = 6,
                                              .lent = 5,
                                              .waiting = 3,
                                              .running = 4,
                                              .reason = "why"}));
}

TEST(PoolStatus, SaysWhoseNodesItLacks) {
  QueueBook book;
  const auto pool = [&](const std::string& name, const std::string& gpu, double created) {
    api::GpuPool made{.spec = {.node_selector = {.match_labels = {{"gpu", gpu}}}}};
    made.meta.name = name;
    made.meta.created = At(created);
    book.SetPool(name, std::make_shared<const api::GpuPool>(made));
    return made;
  };
  const api::GpuPool old = pool("old", "a100", 1);
  const api::GpuPool young = pool("young", "a100", 2);
  planner::NodeView node{.name = "n0", .pool = "old", .labels = {{"gpu", "a100"}}};
  const planner::ClusterSnapshot snapshot{.nodes = {node}, .pools = book.PoolViews()};
  const planner::Plan plan{
      .pools = {
          {.pool = "old", .nodes = 1, .capacity = 8, .allocated = 5, .foreign = 2, .requested = 3},
          {.pool = "young"}}};
  const api::GpuPoolStatus of_old = StatusOf(old, book, {snapshot, plan}, At(5));
  EXPECT_EQ(of_old.nodes, 1);
  EXPECT_EQ(of_old.capacity_gpus, 8);
  EXPECT_EQ(of_old.allocated_gpus, 5);
  EXPECT_EQ(of_old.foreign_gpus, 2);
  EXPECT_EQ(of_old.requested_gpus, 3);
  EXPECT_EQ(Text(of_old.conditions, "Ready"),
            "Ready=True NodesFound: the pool has nodes with GPUs");
  EXPECT_EQ(Text(of_old.conditions, "Overlapping"),
            "Overlapping=False Disjoint: no node of the pool belongs to an older one");
  const api::GpuPoolStatus of_young = StatusOf(young, book, {snapshot, plan}, At(5));
  EXPECT_EQ(Text(of_young.conditions, "Ready"),
            "Ready=False NoNodes: spec.nodeSelector: no node with GPUs belongs to the pool");
  EXPECT_EQ(Text(of_young.conditions, "Overlapping"),
            "Overlapping=True NodesOfOlderPools: spec.nodeSelector also matches 1 node of older "
            "pools, to which it belongs; make the selectors disjoint");
}

}  // namespace
}  // namespace pliant::controller
