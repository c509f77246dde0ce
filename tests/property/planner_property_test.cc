#include <algorithm>
#include <map>
#include <ranges>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#include "base/format.h"
#include "operator/planner/feasibility.h"
#include "operator/planner/fit_memory.h"
#include "operator/planner/sizes.h"
#include "operator/replay/debug_snapshot.h"
#include "tests/property/drawn_clusters.h"
#include "tests/unit/planner/builders.h"

// Properties of every plan. rapidcheck prints the seed and the smallest failing case that it finds.
namespace pliant::planner {
namespace {

using Kind = std::pair<std::string, std::string>;  // of a node's GPUs: product, driver

Kind KindOf(const NodeView& node) {
  const auto label = [&](const char* name) {
    const auto found = node.labels.find(name);
    return found == node.labels.end() ? std::string() : found->second;
  };
  return {label(kGpuProductLabel), label(kGpuDriverLabel)};
}

const NodeView* Find(const ClusterSnapshot& snapshot, const std::string& name) {
  const auto at = std::ranges::find(snapshot.nodes, name, &NodeView::name);
  return at == snapshot.nodes.end() ? nullptr : &*at;
}

const JobView& Find(const ClusterSnapshot& snapshot, const JobKey& key) {
  return *std::ranges::find(snapshot.jobs, key, &JobView::key);
}

// GPUs, before sizes and nodes are considered.
std::map<std::string, std::int64_t> Entitlements(const Plan& plan) {
  std::map<std::string, std::int64_t> gpus;
  for (const Decision& decision : plan.decisions) gpus[decision.job.name] = decision.entitled_gpus;
  return gpus;
}

// One memory serves several plans, while nodes and jobs come, go and change.
RC_GTEST_PROP(PlannerProperty, AReusedFitMemoryChangesNoPlan, ()) {
  FitMemory memory;
  std::uint64_t versions = 0;
  std::map<std::string, std::pair<NodeView, std::uint64_t>> known;
  for (int plan = 0; plan < 4; ++plan) {
    ClusterSnapshot snapshot = DrawCluster();
    for (NodeView& node : snapshot.nodes) {
      auto& [seen, version] = known[node.name];
      if (version == 0 || seen.labels != node.labels || seen.taints != node.taints) {
        seen = node;
        version = ++versions;
      }
      node.version = {version};
    }
    RC_ASSERT(MakePlan(snapshot, {}, memory) == MakePlan(snapshot, {}));
  }
}

RC_GTEST_PROP(PlannerProperty, DecisionsAreWhole, ()) {
  const ClusterSnapshot snapshot = DrawCluster();
  const Plan plan = MakePlan(snapshot, {});
  RC_ASSERT(plan.decisions.size() == snapshot.jobs.size());
  RC_ASSERT(std::ranges::is_sorted(plan.decisions, {}, &Decision::job));
  for (const Decision& decision : plan.decisions) {
    const JobView& job = Find(snapshot, decision.job);
    std::multiset<std::string> named(decision.keep.begin(), decision.keep.end());
    named.insert(decision.drop.begin(), decision.drop.end());
    std::multiset<std::string> present;
    for (const LearnerView& learner : job.learners) {
      if (learner.state != LearnerState::kLeaving) present.insert(learner.name);
    }
    RC_ASSERT(named == present);
    RC_ASSERT(decision.from == static_cast<LearnerCount>(present.size()));
    RC_ASSERT(decision.to ==
              static_cast<LearnerCount>(decision.keep.size() + decision.create.size()));
    RC_ASSERT(!decision.reason.sentence.empty());
    RC_ASSERT(decision.reason.sentence.size() <= 1024u);
    const LearnerCount min = std::min(job.min_learners, ShardLimit(job));
    const bool is_capped_below =
        decision.reason.code == ReasonCode::kGrantWithdrawn && decision.demand < min;
    const bool is_kept_below = decision.reason.code == ReasonCode::kBelowMinimum || is_capped_below;
    RC_ASSERT(decision.to == 0 || is_kept_below || decision.to >= min);
    RC_ASSERT(decision.to <= job.max_learners);
    RC_ASSERT(decision.to <= decision.demand);
    if (is_kept_below) RC_ASSERT(decision.to <= decision.from);
  }
  RC_ASSERT(!plan.again_at || *plan.again_at > snapshot.now);
}

RC_GTEST_PROP(PlannerProperty, NoNodeIsGivenMoreThanItHas, ()) {
  const ClusterSnapshot snapshot = DrawCluster();
  std::map<std::string, Resources> taken;
  std::map<std::string, bool> gets_somebody;
  for (const Decision& decision : MakePlan(snapshot, {}).decisions) {
    const JobView& job = Find(snapshot, decision.job);
    for (const LearnerView& learner : job.learners) {
      if (!std::ranges::contains(decision.keep, learner.name)) continue;
      taken[learner.node] += job.needs.resources;
      if (learner.state == LearnerState::kGated) gets_somebody[learner.node] = true;
    }
    for (const NewLearner& learner : decision.create) {
      taken[learner.node] += job.needs.resources;
      gets_somebody[learner.node] = true;
      const NodeView* node = Find(snapshot, learner.node);
      RC_ASSERT(node != nullptr);
      RC_ASSERT(ObstacleOn(*node, job.needs) == Obstacle::kNone);
    }
  }
  for (const auto& [name, gets] : gets_somebody) {
    const NodeView& node = *Find(snapshot, name);
    RC_ASSERT(Fits(taken[name], node.allocatable - node.foreign));
  }
}

RC_GTEST_PROP(PlannerProperty, ABitwiseJobGetsGpusOfOneKind, ()) {
  ClusterSnapshot snapshot = DrawCluster();
  DrawProducts(snapshot);
  const Plan plan = MakePlan(snapshot, {});
  for (const Decision& decision : plan.decisions) {
    const JobView& job = Find(snapshot, decision.job);
    if (job.training.reproducibility != Reproducibility::kBitwise) continue;
    std::set<Kind> kinds;
    for (const NewLearner& learner : decision.create) {
      kinds.insert(KindOf(*Find(snapshot, learner.node)));
    }
    RC_ASSERT(kinds.size() <= 1u);
    if (!kinds.empty()) RC_ASSERT(kinds.begin()->first == decision.gpu_product);
    if (!job.training.gpu_product.empty())
      RC_ASSERT(decision.gpu_product == job.training.gpu_product);
  }
}

// The best kind is the one that is tried first, not the only one.
RC_GTEST_PROP(PlannerProperty, ABitwiseJobWaitsOnlyIfItFitsNoKind, ()) {
  ClusterSnapshot snapshot{.now = kStart, .nodes = {}, .jobs = {}};
  const int nodes = Draw(1, 5);
  for (int index = 0; index < nodes; ++index) {
    NodeView node = GpuNode(Format("n{}", index), Draw(1, 4));
    node.labels[kGpuProductLabel] = std::to_string(Draw(1, 2));
    if (DrawOneIn(2)) node.labels[kGpuDriverLabel] = std::to_string(Draw(1, 2));
    snapshot.nodes.push_back(node);
  }
  const int jobs = Draw(1, 5);
  for (int index = 0; index < jobs; ++index) {
    const LearnerCount learners = Draw(1, 6);
    JobOf job(Format("j{}", index), learners, learners);
    if (DrawOneIn(2)) job.view.training.reproducibility = Reproducibility::kStatistical;
    snapshot.jobs.push_back(job.Shards(4096).Submitted(Seconds{Draw(0, 3)}).view);
  }
  const Plan plan = MakePlan(snapshot, {});
  RC_LOG() << Describe(snapshot);
  std::map<Kind, std::int64_t> idle;
  for (const NodeView& node : snapshot.nodes) idle[KindOf(node)] += node.allocatable.gpus;
  for (const Decision& decision : plan.decisions) {
    RC_LOG() << decision << "\n";
    for (const NewLearner& learner : decision.create) {
      --idle[KindOf(*Find(snapshot, learner.node))];
    }
  }
  for (const Decision& decision : plan.decisions) {
    const JobView& job = Find(snapshot, decision.job);
    if (decision.to > 0 || job.training.reproducibility != Reproducibility::kBitwise) continue;
    for (const auto& [kind, gpus] : idle) RC_ASSERT(gpus < job.min_learners);
  }
}

RC_GTEST_PROP(PlannerProperty, OpenGatesFitInAdditionToAllThatHoldsGpus, ()) {
  const ClusterSnapshot snapshot = DrawCluster();
  const Plan plan = MakePlan(snapshot, {});
  std::map<std::string, Resources> taken;
  for (const JobView& job : snapshot.jobs) {
    for (const LearnerView& learner : job.learners) {
      if (learner.state != LearnerState::kGated) taken[learner.node] += job.needs.resources;
    }
  }
  for (const GateOpening& gate : plan.gates_open) {
    const JobView& job = Find(snapshot, gate.job);
    const auto learner = std::ranges::find(job.learners, gate.learner, &LearnerView::name);
    RC_ASSERT(learner->state == LearnerState::kGated);
    RC_ASSERT(learner->node == gate.node);
    RC_ASSERT(std::ranges::contains(DecisionOn(plan, job.key.name).keep, gate.learner));
    taken[gate.node] += job.needs.resources;
    const NodeView& node = *Find(snapshot, gate.node);
    RC_ASSERT(Fits(taken[gate.node], node.allocatable - node.foreign));
  }
}

RC_GTEST_PROP(PlannerProperty, TheOrderOfTheSnapshotDoesNotMatter, ()) {
  ClusterSnapshot snapshot = DrawCluster();
  const Plan plan = MakePlan(snapshot, {});
  std::ranges::reverse(snapshot.jobs);
  std::ranges::rotate(snapshot.nodes,
                      snapshot.nodes.begin() + Draw(0, static_cast<int>(snapshot.nodes.size())));
  for (JobView& job : snapshot.jobs) std::ranges::reverse(job.learners);
  const Plan again = MakePlan(snapshot, {});
  RC_ASSERT(plan.decisions.size() == again.decisions.size());
  for (std::size_t index = 0; index < plan.decisions.size(); ++index) {
    Decision left = plan.decisions[index];
    Decision right = again.decisions[index];
    std::ranges::sort(left.drop);
    std::ranges::sort(right.drop);
    RC_ASSERT(left == right);
  }
  RC_ASSERT(plan.gates_open == again.gates_open);
  RC_ASSERT(plan.again_at == again.again_at);
}

// The file of /debug/snapshot has no uids of jobs, and everything else.
RC_GTEST_PROP(PlannerProperty, APlanCanBeReplayed, ()) {
  const ClusterSnapshot snapshot = DrawCluster();
  const Plan plan = MakePlan(snapshot, {});
  const auto read = replay::ReadSnapshot(replay::WriteSnapshot({snapshot, {}, plan}));
  RC_ASSERT(read.has_value());
  const Plan again = MakePlan(read->snapshot, read->policy);
  RC_ASSERT(replay::WritePlan(again) == replay::WritePlan(plan));
  RC_ASSERT(again == *read->plan);
}

RC_GTEST_PROP(PlannerProperty, ASecondPlanChangesNothing, ()) {
  RC_ASSERT(PlansUntilRest(DrawCluster(Disorder::kTidy)).size() <= 1u);
  RC_ASSERT(PlansUntilRest(DrawPlainCluster()).size() <= 1u);
}

// Where jobs can use different nodes, or need different CPU, a later plan may find that more fits.
RC_GTEST_PROP(PlannerProperty, PlansComeToRest, ()) { PlansUntilRest(DrawCluster(Disorder::kAny)); }

// Where learners go does not decide how many a job gets.
RC_GTEST_PROP(PlannerProperty, DomainsChangeNoSizes, ()) {
  ClusterSnapshot snapshot = DrawPlainCluster();
  snapshot.pools = {kPoolWithRacks};
  const auto before = Entitlements(MakePlan(snapshot, {}));
  for (NodeView& node : snapshot.nodes) DrawDomains(node);
  for (JobView& job : snapshot.jobs) {
    if (DrawOneIn(2)) job.placement = PlacementPolicy::kSpread;
  }
  RC_ASSERT(Entitlements(MakePlan(snapshot, {})) == before);
}

// The GPUs of each domain, by level: zone, rack in its zone, node.
std::vector<std::map<std::string, std::int64_t>> GpusByDomain(const std::vector<NodeView>& nodes) {
  std::vector<std::map<std::string, std::int64_t>> levels(3);
  for (const NodeView& node : nodes) {
    std::string domain;
    for (std::size_t level = 0; level < 2; ++level) {
      const auto label = node.labels.find(kPoolWithRacks.topology_keys[level]);
      domain += "/" + (label != node.labels.end() ? label->second : node.name);
      levels[level][domain] += node.allocatable.gpus;
    }
    levels[2][node.name] += node.allocatable.gpus;
  }
  return levels;
}

RC_GTEST_PROP(PlannerProperty, AJobIsInTheNarrowestDomainWithRoomForIt, ()) {
  ClusterSnapshot snapshot{.now = kStart, .pools = {kPoolWithRacks}};
  const int nodes = Draw(1, 8);
  for (int index = 0; index < nodes; ++index) {
    NodeView node = GpuNode(Format("n{}", index), Draw(1, 4));
    DrawDomains(node);
    snapshot.nodes.push_back(node);
  }
  snapshot.jobs = {JobOf("a", 1, Draw(1, 12)).Shards(4096).view};
  const Plan plan = MakePlan(snapshot, {});
  const Decision& decision = plan.decisions.front();

  std::vector<NodeView> used;
  for (const auto& [name, learners] : PlacedOn(snapshot, decision)) {
    used.push_back(*Find(snapshot, name));
  }
  RC_LOG() << Describe(snapshot) << decision;
  const auto all = GpusByDomain(snapshot.nodes);
  const auto chosen = GpusByDomain(used);
  for (std::size_t level = 0; level < all.size(); ++level) {
    const bool one_would_do = std::ranges::any_of(
        all[level], [&](const auto& domain) { return domain.second >= decision.to; });
    if (one_would_do) RC_ASSERT(chosen[level].size() == 1u);
  }
}

RC_GTEST_PROP(PlannerProperty, NobodyLosesWhenAGpuIsAdded, ()) {
  ClusterSnapshot snapshot = DrawPlainCluster(1, Sizes::kAny);
  const auto before = Entitlements(MakePlan(snapshot, {}));
  ++snapshot.nodes[0].allocatable.gpus;
  const auto after = Entitlements(MakePlan(snapshot, {}));
  for (const auto& [job, size] : before) RC_ASSERT(after.at(job) >= size);
}

RC_GTEST_PROP(PlannerProperty, AHigherPriorityGivesNothingToBystanders, ()) {
  ClusterSnapshot snapshot = DrawPlainCluster(1, Sizes::kAny);
  const auto before = Entitlements(MakePlan(snapshot, {}));
  JobView& raised =
      snapshot.jobs[static_cast<std::size_t>(Draw(0, static_cast<int>(snapshot.jobs.size()) - 1))];
  raised.priority += Draw(1, 30);
  const auto after = Entitlements(MakePlan(snapshot, {}));
  for (const auto& [job, size] : before) {
    if (job == raised.key.name) {
      RC_ASSERT(after.at(job) >= size);
    } else {
      RC_ASSERT(after.at(job) <= size);
    }
  }
}

RC_GTEST_PROP(PlannerProperty, NobodyHasABetterClaimToAnothersGpu, ()) {
  const ClusterSnapshot snapshot = DrawPlainCluster(2);
  const auto sizes = Entitlements(MakePlan(snapshot, {}));
  std::int64_t total = 0;
  std::int64_t demand = 0;
  for (const JobView& job : snapshot.jobs) {
    total += sizes.at(job.key.name);
    demand += job.max_learners;
    for (const JobView& other : snapshot.jobs) {
      const std::int64_t own = sizes.at(job.key.name);
      const std::int64_t others = sizes.at(other.key.name);
      if (own >= job.max_learners || others <= other.min_learners) continue;
      RC_ASSERT(job.priority * (2 * others - 1) <= other.priority * (2 * own + 1));
    }
  }
  RC_ASSERT(total == std::min<std::int64_t>(demand, snapshot.nodes[0].allocatable.gpus));
}

// No GPU that a job could use is left idle, however the jobs before it were placed.
RC_GTEST_PROP(PlannerProperty, NoUsableGpuIsIdle, ()) {
  ClusterSnapshot snapshot{.now = kStart, .nodes = {}, .jobs = {}};
  const int nodes = Draw(1, 4);
  for (int index = 0; index < nodes; ++index) {
    NodeView node = GpuNode(Format("n{}", index), Draw(1, 4));
    for (const char* label : {"a", "b", "c"}) {
      if (DrawOneIn(2)) node.labels[label] = "yes";
    }
    snapshot.nodes.push_back(node);
  }
  const int jobs = Draw(1, 5);
  for (int index = 0; index < jobs; ++index) {
    JobOf job(Format("j{}", index), 1, Draw(1, 6));
    job.Shards(4096).Priority(Draw(1, 9));
    for (const char* label : {"a", "b", "c"}) {
      if (DrawOneIn(3)) job.view.needs.node_selector[label] = "yes";
    }
    snapshot.jobs.push_back(job.view);
  }
  const Plan plan = MakePlan(snapshot, {});
  std::map<std::string, std::int64_t> used;
  for (const Decision& decision : plan.decisions) {
    for (const NewLearner& learner : decision.create) ++used[learner.node];
  }
  for (const Decision& decision : plan.decisions) {
    if (decision.to >= decision.demand) continue;
    const JobView& job = Find(snapshot, decision.job);
    for (const NodeView& node : snapshot.nodes) {
      if (ObstacleOn(node, job.needs) != Obstacle::kNone) continue;
      RC_ASSERT(used[node.name] == node.allocatable.gpus);
    }
  }
}

// A cluster over time: pods that hold GPUs never exceed what their node had when they were
// admitted, and whenever the world stands still, plans stop changing.
RC_GTEST_PROP(PlannerProperty, AClusterOverTime, ()) {
  World world(Nodes(Draw(1, 3), Draw(1, 4)));
  const int events = Draw(1, 12);
  int submitted = 0;
  for (int event = 0; event < events; ++event) {
    world.Wait(Seconds{Draw(0, 60)});
    const auto any_job = [&]() -> JobView* {
      if (world.snapshot.jobs.empty()) return nullptr;
      return &world.snapshot.jobs[static_cast<std::size_t>(
          Draw(0, static_cast<int>(world.snapshot.jobs.size()) - 1))];
    };
    JobView* const job = any_job();
    switch (Draw(0, 5)) {
      case 0:
      case 1:
        world.Submit(JobOf(Format("j{}", submitted++), Draw(1, 3), Draw(3, 8)));
        break;
      case 2:
        if (job) job->priority = Draw(1, 10000);
        break;
      case 3:
        if (job) job->suspended = !job->suspended;
        break;
      case 4:
        if (job) world.Finish(job->key.name);
        break;
      case 5: {
        NodeView& node = world.snapshot.nodes[static_cast<std::size_t>(
            Draw(0, static_cast<int>(world.snapshot.nodes.size()) - 1))];
        node.schedulable = !node.schedulable;
        break;
      }
    }
    world.CarryOut(world.MakePlan());
    if (DrawOneIn(2)) world.EndLeavers();
    if (DrawOneIn(2)) world.StartLearners();
    std::map<std::string, std::int64_t> holding;
    for (const JobView& each : world.snapshot.jobs) {
      for (const LearnerView& learner : each.learners) {
        if (learner.state != LearnerState::kGated) ++holding[learner.node];
      }
    }
    for (const NodeView& node : world.snapshot.nodes) {
      RC_ASSERT(holding[node.name] <= node.allocatable.gpus);
    }
  }
  world.Settle();
}

}  // namespace
}  // namespace pliant::planner
