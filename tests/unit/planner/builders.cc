#include "tests/unit/planner/builders.h"

#include <algorithm>
#include <utility>

#include <gtest/gtest.h>

#include "base/format.h"
#include "operator/planner/carry_out.h"

namespace pliant::planner {

NodeView GpuNode(const std::string& name, std::int64_t gpus) {
  return {.name = name,
          .allocatable = {.gpus = gpus, .cpu_millis = 64'000, .memory_bytes = 512 * kGiB}};
}

std::vector<NodeView> Nodes(int count, std::int64_t gpus_each) {
  std::vector<NodeView> nodes;
  for (int index = 0; index < count; ++index) {
    nodes.push_back(GpuNode(Format("n{:02}", index), gpus_each));
  }
  return nodes;
}

JobOf::JobOf(const std::string& name, LearnerCount min, LearnerCount max) {
  view.key = {.name_space = "team-a", .name = name, .uid = "uid-" + name};
  view.min_learners = min;
  view.max_learners = max;
  view.training.logical_shards = 32;
  view.needs.resources = {.gpus = 1, .cpu_millis = 100, .memory_bytes = kGiB};
  view.submitted = kStart;
}

JobOf& JobOf::Priority(int priority) {
  view.priority = priority;
  return *this;
}
JobOf& JobOf::Shards(int shards) {
  view.training.logical_shards = shards;
  return *this;
}
JobOf& JobOf::Asks(LearnerCount learners) {
  view.learners_asked = learners;
  return *this;
}
JobOf& JobOf::Submitted(Seconds after_start) {
  view.submitted = kStart + after_start;
  return *this;
}
JobOf& JobOf::Attained(std::int64_t gpu_seconds) {
  view.waiting.attained_gpu_seconds = gpu_seconds;
  return *this;
}
JobOf& JobOf::Needs(std::int64_t cpu_millis, std::int64_t memory_bytes) {
  view.needs.resources.cpu_millis = cpu_millis;
  view.needs.resources.memory_bytes = memory_bytes;
  return *this;
}
JobOf& JobOf::In(const std::string& name_space) {
  view.key.name_space = name_space;
  return *this;
}

JobOf& JobOf::Queue(const std::string& queue) {
  view.queue = queue;
  return *this;
}
JobOf& JobOf::GpusEach(std::int64_t gpus) {
  view.needs.resources.gpus = gpus;
  return *this;
}
JobOf& JobOf::OnlyOn(const std::string& pool) {
  view.needs.node_selector["pool"] = pool;
  return *this;
}
JobOf& JobOf::Avoids(const std::string& node, Seconds until) {
  view.avoided.push_back({.node = node, .until = kStart + until});
  return *this;
}
JobOf& JobOf::Resized(Seconds after_start) {
  view.share.resized = kStart + after_start;
  return *this;
}
JobOf& JobOf::Started(Seconds after_start, Seconds min_runtime) {
  view.share.started = kStart + after_start;
  view.min_runtime = min_runtime;
  return *this;
}
JobOf& JobOf::Suspended() {
  view.suspended = true;
  return *this;
}
JobOf& JobOf::Has(LearnerCount learners, const std::string& node, LearnerState state,
                  Seconds since) {
  for (LearnerCount count = 0; count < learners; ++count) {
    view.learners.push_back({.name = Format("{}-{}", view.key.name, view.learners.size()),
                             .node = node,
                             .state = state,
                             .created = kStart + since,
                             .since = kStart + since,
                             .member = state == LearnerState::kRunning});
  }
  if (state != LearnerState::kLeaving) view.share.desired += learners;
  return *this;
}

ClusterSnapshot SnapshotOf(const PlanCase& plan_case) {
  ClusterSnapshot snapshot{.now = kStart + plan_case.now, .nodes = plan_case.nodes};
  for (const JobOf& job : plan_case.jobs) snapshot.jobs.push_back(job.view);
  snapshot.budgets = plan_case.budgets;
  snapshot.queues = plan_case.queues;
  snapshot.pools = plan_case.pools;
  return snapshot;
}

std::string Describe(const ClusterSnapshot& snapshot) {
  std::string text;
  for (const NodeView& node : snapshot.nodes) {
    text += Format("node {}: {} GPUs ({} foreign), {}m CPU, pool {}{}{}\n", node.name,
                   node.allocatable.gpus, node.foreign.gpus, node.allocatable.cpu_millis,
                   node.labels.contains("pool") ? node.labels.at("pool") : "none",
                   node.ready ? "" : ", not ready", node.schedulable ? "" : ", cordoned");
  }
  for (const QueueView& queue : snapshot.queues) {
    text +=
        Format("queue {}: weight {}, guaranteed {}, limit {}, lends {}, policy {}{}{}, stop {}\n",
               queue.name, queue.weight, queue.guaranteed_gpus, queue.limit_gpus.value_or(-1),
               queue.lending_limit_gpus.value_or(-1), static_cast<int>(queue.policy),
               queue.strict ? ", strict" : "", queue.evicts ? "" : ", does not evict",
               static_cast<int>(queue.stop));
  }
  constexpr const char* kStates[] = {"gated", "starting", "running", "leaving"};
  for (const JobView& job : snapshot.jobs) {
    text += Format("job {} of {}: {}..{} of {} GPUs, {}m CPU, priority {}, {} shards{}{}\n",
                   job.key.name, job.queue, job.min_learners, job.max_learners,
                   job.needs.resources.gpus, job.needs.resources.cpu_millis, job.priority,
                   job.training.logical_shards, job.suspended ? ", suspended" : "",
                   job.finished ? ", finished" : "");
    for (const auto& [key, value] : job.needs.node_selector)
      text += Format("  only {}={}\n", key, value);
    for (const AvoidedNode& avoided : job.avoided) text += Format("  avoids {}\n", avoided.node);
    if (job.cap) text += Format("  capped at {} until {}\n", job.cap->learners, job.cap->until);
    for (const LearnerView& learner : job.learners) {
      text += Format("  {} {} on {} since {}\n", learner.name,
                     kStates[static_cast<int>(learner.state)], learner.node, learner.since);
    }
  }
  return text;
}

const QueueShare& ShareOf(const Plan& plan, const std::string& queue) {
  const auto at = std::ranges::find(plan.queues, queue, &QueueShare::queue);
  if (at == plan.queues.end()) throw std::out_of_range("no share of queue " + queue);
  return *at;
}

const Decision& DecisionOn(const Plan& plan, const std::string& job) {
  const auto at =
      std::ranges::find(plan.decisions, job, [](const Decision& d) { return d.job.name; });
  if (at == plan.decisions.end()) throw std::out_of_range("no decision on job " + job);
  return *at;
}

std::map<std::string, int> PlacedOn(const ClusterSnapshot& snapshot, const Decision& decision) {
  std::map<std::string, int> nodes;
  for (const JobView& job : snapshot.jobs) {
    if (job.key != decision.job) continue;
    for (const LearnerView& learner : job.learners) {
      if (std::ranges::contains(decision.keep, learner.name)) ++nodes[learner.node];
    }
  }
  for (const NewLearner& learner : decision.create) ++nodes[learner.node];
  return nodes;
}

void ExpectPlan(const PlanCase& plan_case, const Policy& policy) {
  SCOPED_TRACE(plan_case.name);
  const ClusterSnapshot snapshot = SnapshotOf(plan_case);
  const Plan plan = MakePlan(snapshot, policy);
  ASSERT_EQ(plan.decisions.size(), plan_case.jobs.size());
  ASSERT_EQ(plan_case.want.size(), plan_case.jobs.size())
      << "the case must state the result for every job";
  for (const PlanCase::Want& want : plan_case.want) {
    const Decision& decision = DecisionOn(plan, want.job);
    SCOPED_TRACE(testing::PrintToString(decision));
    EXPECT_EQ(decision.to, want.to);
    EXPECT_EQ(decision.reason.code, want.reason);
    EXPECT_FALSE(decision.reason.sentence.empty());
    if (!want.sentence.empty()) {
      EXPECT_EQ(decision.reason.sentence, want.sentence);
    }
    if (!want.nodes.empty()) {
      EXPECT_EQ(PlacedOn(snapshot, decision), want.nodes);
    }
  }
}

World::World(std::vector<NodeView> nodes)
    : snapshot{.now = kStart, .nodes = std::move(nodes), .jobs = {}} {}

void World::Submit(JobOf job) {
  job.view.submitted = snapshot.now;
  snapshot.jobs.push_back(std::move(job.view));
}

JobView& World::job(const std::string& name) {
  return *std::ranges::find(snapshot.jobs, name, [](const JobView& job) { return job.key.name; });
}

void World::Finish(const std::string& name) {
  JobView& finished = job(name);
  finished.finished = true;
  finished.learners.clear();
}

void World::CarryOut(const Plan& plan) {
  for (const Decision& decision : plan.decisions) {
    JobView& view = *std::ranges::find(snapshot.jobs, decision.job, &JobView::key);
    view.share = ShareAfter(view.share, decision, snapshot.now);
    const bool runs =
        std::ranges::contains(view.learners, LearnerState::kRunning, &LearnerView::state);
    if (runs) view.training.gpu_product = decision.gpu_product;
    view.cap = decision.cap;
    for (LearnerView& learner : view.learners) {
      if (!std::ranges::contains(decision.drop, learner.name)) continue;
      // A pod that is still gated ends at once.
      if (learner.state == LearnerState::kGated) learner.node.clear();
      learner.state = LearnerState::kLeaving;
      learner.since = snapshot.now;
    }
    std::erase_if(view.learners, [](const LearnerView& learner) { return learner.node.empty(); });
    for (const NewLearner& learner : decision.create) {
      if (learner.waits_for_quota) continue;
      view.learners.push_back({.name = Format("{}-{}", view.key.name, next_learner_++),
                               .node = learner.node,
                               .created = snapshot.now,
                               .since = snapshot.now});
    }
    for (const GateOpening& gate : plan.gates_open) {
      if (gate.job != view.key) continue;
      LearnerView& learner = *std::ranges::find(view.learners, gate.learner, &LearnerView::name);
      learner.state = LearnerState::kStarting;
      learner.since = snapshot.now;
    }
  }
}

void World::EndLeavers() {
  for (JobView& view : snapshot.jobs) {
    std::erase_if(view.learners, [](const LearnerView& learner) {
      return learner.state == LearnerState::kLeaving;
    });
  }
}

void World::StartLearners() {
  for (JobView& view : snapshot.jobs) {
    for (LearnerView& learner : view.learners) {
      if (learner.state != LearnerState::kStarting) continue;
      learner.state = LearnerState::kRunning;
      learner.since = snapshot.now;
      learner.member = true;
    }
  }
}

void World::Settle() {
  for (int round = 0; round < 8; ++round) {
    const ClusterSnapshot before = snapshot;
    CarryOut(MakePlan());
    EndLeavers();
    StartLearners();
    if (snapshot == before) return;
  }
  ADD_FAILURE() << "the plans do not stop changing";
}

std::map<std::string, LearnerCount> World::Sizes() const {
  std::map<std::string, LearnerCount> sizes;
  for (const JobView& view : snapshot.jobs) {
    const auto running =
        std::ranges::count(view.learners, LearnerState::kRunning, &LearnerView::state);
    if (running > 0) sizes[view.key.name] = static_cast<LearnerCount>(running);
  }
  return sizes;
}

}  // namespace pliant::planner
