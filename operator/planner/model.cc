#include "operator/planner/model.h"

#include <algorithm>
#include <array>
#include <map>
#include <ranges>
#include <set>
#include <string>
#include <string_view>
#include <tuple>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "base/earliest.h"
#include "operator/planner/feasibility.h"
#include "operator/planner/gpu_kinds.h"
#include "operator/planner/pending_pods.h"
#include "operator/planner/sizes.h"
#include "operator/planner/speed_sharing.h"
#include "operator/planner/withdrawals.h"

namespace pliant::planner {
namespace {

// Everything that decides which nodes a job may use.
struct FitKey {
  const PodNeeds* needs = nullptr;
  std::optional<GpuKind> gpus;
  std::vector<std::string_view> avoided;  // sorted

  bool operator<(const FitKey& other) const {
    return std::tie(*needs, gpus, avoided) < std::tie(*other.needs, other.gpus, other.avoided);
  }
};

int StateRank(const LearnerView& learner) {
  switch (learner.state) {
    case LearnerState::kRunning:
      return learner.member ? 0 : 1;
    case LearnerState::kStarting:
      return 2;
    case LearnerState::kGated:
      return 3;
    case LearnerState::kLeaving:
      return 4;
  }
  return 4;
}

std::string_view NameOf(const Queue& queue) { return queue.view->name; }

class Builder {
 public:
  Builder(const ClusterSnapshot& snapshot, const PoolScope& scope, const Policy& policy,
          FitMemory& memory)
      : snapshot_(snapshot), scope_(scope), policy_(policy), memory_(memory) {
    model_.snapshot = &snapshot;
    model_.pool = scope.pool;
    model_.pool_exists = scope.exists;
  }

  Model Build() {
    AddNodes();
    CountLearnersOfOtherPools();
    for (const Node& node : model_.nodes) node_views_.push_back(node.view);
    model_.topology = Topology(model_.pool.topology_keys, node_views_);
    AddJobs();
    AddQueues();
    only_kind_ = OnlyKind();
    for (Job& job : model_.jobs) {
      CountOccupied(job);
      if (!job.active) continue;
      Withdraw(job);
      SetDemand(job);
      if (!only_kind_) continue;  // then its GPUs depend on the other jobs
      const auto product = FixedProduct(*job.view);
      const bool is_elsewhere = product && *product != only_kind_->product;
      job.fit = FitOf(*job.view,
                      is_elsewhere ? std::optional(GpuKind{.product = *product}) : std::nullopt);
      SortHeld(job);
      SetProtection(job);
    }
    if (!only_kind_) ChooseKinds();
    SetBudgets();
    for (Job& job : model_.jobs) {
      if (job.active) job.usable = UsefulLearners(job, UsableLearners(job));
    }
    for (const Node& node : model_.nodes) {
      model_.capacity_gpus += std::max(node.room.gpus, node.held_gpus);
    }
    return std::move(model_);
  }

 private:
  void AddNodes() {
    for (const NodeView& view : snapshot_.nodes) {
      if (view.pool != scope_.pool.name) continue;
      Node node{.view = &view, .name = view.name, .gpus = GpusOn(view)};
      if (MayStart(view)) {
        node.room = view.allocatable - view.foreign;
        node.room.gpus = std::max<std::int64_t>(node.room.gpus, 0);
      }
      model_.nodes.push_back(node);
    }
    const auto by_name = [](const Node& left, const Node& right) { return left.name < right.name; };
    std::ranges::sort(model_.nodes, by_name);
    // A node that does not exist (any longer) is treated like one that is not ready.
    std::unordered_set<std::string_view> known;
    for (const Node& node : model_.nodes) known.insert(node.name);
    std::vector<std::string_view> missing;
    for (const JobView& job : snapshot_.jobs) {
      if (job.pool != scope_.pool.name) continue;
      for (const LearnerView& learner : job.learners) {
        if (known.insert(learner.node).second) missing.push_back(learner.node);
      }
    }
    for (const std::string_view name : missing) model_.nodes.push_back(Node{.name = name});
    if (!missing.empty()) std::ranges::sort(model_.nodes, by_name);
    for (NodeIndex index = 0; index < std::ssize(model_.nodes); ++index) {
      model_.node_indexes.emplace(model_.nodes[index].name, index);
    }
  }

  // A node may have left their pool for this one; then they hold GPUs of this one, too. If it is in
  // both, or their pool counts another resource, they hold GPUs of another kind.
  void CountLearnersOfOtherPools() {
    const auto is_of_another = [this](const JobView& job) { return job.pool != scope_.pool.name; };
    if (std::ranges::none_of(snapshot_.jobs, is_of_another)) return;
    std::set<std::pair<std::string_view, std::string_view>> members;  // pool, node
    for (const NodeView& view : snapshot_.nodes) members.emplace(view.pool, view.name);
    for (const JobView& job : snapshot_.jobs) {
      if (job.pool == scope_.pool.name) continue;
      const bool other_kind = ResourceOf(snapshot_, job.pool) != scope_.pool.resource;
      for (const LearnerView& learner : job.learners) {
        const auto found = model_.node_indexes.find(learner.node);
        if (found == model_.node_indexes.end() || learner.state == LearnerState::kGated) continue;
        const NodeIndex at = found->second;
        Resources takes = job.needs.resources;
        if (other_kind || members.contains({job.pool, learner.node})) takes.gpus = 0;
        Resources& room = model_.nodes[at].room;
        room -= takes;
        room.gpus = std::max<std::int64_t>(room.gpus, 0);
      }
    }
  }

  void AddJobs() {
    model_.jobs.reserve(snapshot_.jobs.size());
    for (const JobView& view : snapshot_.jobs) {
      if (view.pool != scope_.pool.name) continue;
      Job job{.view = &view,
              .active = !view.suspended && !view.finished && view.needs.resources.gpus > 0,
              .cap = view.cap};
      job.present = static_cast<LearnerCount>(std::ranges::count_if(
          view.learners,
          [](const LearnerView& learner) { return learner.state != LearnerState::kLeaving; }));
      model_.jobs.push_back(std::move(job));
    }
    const auto by_key = [](const Job& left, const Job& right) {
      return left.view->key < right.view->key;
    };
    if (model_.pool.yields) {
      model_.pending_pods =
          JobsOfPendingPods(snapshot_, scope_.pool, policy_, node_views_, memory_, model_.again_at);
      for (const JobView& pod : model_.pending_pods) {
        model_.jobs.push_back({.view = &pod, .is_pod = true, .active = true});
      }
    }
    // Stores already return them in this order; most of the cost of sorting is comparing names.
    if (!std::ranges::is_sorted(model_.jobs, by_key)) std::ranges::sort(model_.jobs, by_key);
  }

  void AddQueues() {
    for (const QueueView& view : snapshot_.queues) {
      if (view.pool == scope_.pool.name) model_.queues.push_back({.view = &view});
    }
    // Thousands of jobs name few queues.
    std::unordered_map<std::string_view, QueueIndex> indexes;
    for (const Queue& queue : model_.queues) indexes.emplace(NameOf(queue), 0);
    for (const Job& job : model_.jobs) {
      if (indexes.emplace(job.view->queue, 0).second) AddImpliedQueue(job.view->queue);
    }
    std::ranges::sort(model_.queues, {}, NameOf);
    for (QueueIndex index = 0; index < std::ssize(model_.queues); ++index) {
      indexes[NameOf(model_.queues[index])] = index;
    }
    for (JobIndex index = 0; index < std::ssize(model_.jobs); ++index) {
      Job& job = model_.jobs[index];
      job.queue = indexes.find(job.view->queue)->second;
      if (job.active) model_.queues[job.queue].jobs.push_back(index);
    }
  }

  // A queue that only jobs name.
  void AddImpliedQueue(const std::string& name) {
    if (name == kQueueOfPods) {
      model_.implied_queues.push_back(QueueOfPendingPods(scope_.pool, model_.pending_pods));
      model_.queues.push_back({.view = &model_.implied_queues.back()});
      return;
    }
    const bool is_built_in = name == kBuiltInQueue;
    model_.implied_queues.push_back(
        {.name = name, .pool = scope_.pool.name, .weight = is_built_in ? QueueView{}.weight : 1});
    model_.queues.push_back({.view = &model_.implied_queues.back(), .exists = is_built_in});
  }

  // A lowered quota does not evict running learners.
  void SetBudgets() {
    model_.budgets = scope_.budgets;
    std::vector<std::int64_t> held(model_.budgets.size());
    for (Job& job : model_.jobs) {
      const auto at =
          std::ranges::find(model_.budgets, job.view->key.name_space, &GpuBudget::name_space);
      if (!job.active || at == model_.budgets.end()) continue;
      job.budget = static_cast<int>(at - model_.budgets.begin());
      held[*job.budget] += job.present * job.needs().gpus;
    }
    for (std::size_t budget = 0; budget < held.size(); ++budget) {
      model_.budgets[budget].gpus = std::max(model_.budgets[budget].gpus, held[budget]);
    }
  }

  // Learners of the job that its nodes can have: as many as fit if the nodes are empty, or more
  // where more are. Nodes that take no new learners count with those that they have.
  std::int64_t LearnersThatFit(const Job& job) const {
    const Fit& fit = model_.fits[job.fit];
    std::int64_t learners = fit.slots;
    for (const int other : job.other_fits) learners = std::max(learners, model_.fits[other].slots);
    for (const HeldAt& held : job.held_at) {
      const bool takes_more = std::ranges::binary_search(fit.nodes, held.node);
      const std::int64_t slots =
          takes_more ? TimesIn(model_.nodes[held.node].room, fit.needs) : std::int64_t{0};
      learners = BoundedSum(learners, std::max<std::int64_t>(held.started - slots, 0));
    }
    return learners;
  }

  LearnerCount UsableLearners(const Job& job) const {
    std::int64_t learners = LearnersThatFit(job);
    if (job.budget) {
      learners = std::min(learners, model_.budgets[*job.budget].gpus / job.needs().gpus);
    }
    return static_cast<LearnerCount>(std::min<std::int64_t>(job.demand, learners));
  }

  void CountOccupied(const Job& job) {
    for (const LearnerView& learner : job.view->learners) {
      if (learner.state == LearnerState::kGated) continue;
      Node& node = model_.nodes[model_.NodeNamed(learner.node)];
      node.occupied_gpus += job.needs().gpus;
    }
  }

  // The kind of all nodes' GPUs, also if there is none; nullopt: they have several.
  std::optional<GpuKind> OnlyKind() const {
    std::optional<GpuKind> kind;
    for (const Node& node : model_.nodes) {
      if (node.view == nullptr) continue;
      if (kind && *kind != node.gpus) return std::nullopt;
      kind = node.gpus;
    }
    return kind.value_or(GpuKind());
  }

  void ChooseKinds() {
    GpuKinds kinds(model_,
                   [this](const Job& job, const GpuKind& kind) { return FitOf(*job.view, kind); });
    std::vector<Job*> jobs;
    for (Job& job : model_.jobs) {
      if (job.active) jobs.push_back(&job);
    }
    std::ranges::sort(jobs, [](const Job* left, const Job* right) {
      return std::tie(left->view->submitted, left->view->key) <
             std::tie(right->view->submitted, right->view->key);
    });
    for (Job* job : jobs) {
      const std::vector<GpuKind> choices = kinds.ChoicesFor(*job);
      job->fit = FitOf(*job->view, choices.empty() ? std::nullopt : std::optional(choices.front()));
      for (const GpuKind& kind : choices | std::views::drop(1)) {
        job->other_fits.push_back(FitOf(*job->view, kind));
      }
    }
    for (Job* job : jobs) {
      SortHeld(*job);
      SetProtection(*job);
    }
  }

  int FitOf(const JobView& view, const std::optional<GpuKind>& gpus) {
    FitKey key{.needs = &view.needs, .gpus = gpus};
    for (const AvoidedNode& avoided : view.avoided) {
      if (avoided.until <= snapshot_.now) continue;
      key.avoided.push_back(avoided.node);
      AgainAt(avoided.until);
    }
    std::ranges::sort(key.avoided);
    const auto [at, is_new] = fits_.try_emplace(key, static_cast<int>(model_.fits.size()));
    if (!is_new) return at->second;
    Fit fit{.needs = view.needs.resources,
            .gpus = gpus,
            .obstacles = memory_.Compare(scope_.pool.name, view.needs, node_views_)};
    for (NodeIndex index = 0; index < std::ssize(model_.nodes); ++index) {
      const Node& node = model_.nodes[index];
      if (node.view == nullptr) continue;
      Obstacle& obstacle = fit.obstacles[index];
      obstacle = ObstacleOn(*node.view, view.needs, obstacle);
      if (obstacle == Obstacle::kNone && gpus && node.gpus != *gpus) {
        obstacle = node.gpus.product == gpus->product ? Obstacle::kDriver : Obstacle::kProduct;
      }
      if (obstacle != Obstacle::kNone) continue;
      if (std::ranges::binary_search(key.avoided, node.name)) continue;
      fit.nodes.push_back(index);
      const std::int64_t slots = TimesIn(node.room, fit.needs);
      fit.slots += slots;
      fit.slots_of_largest = std::max(fit.slots_of_largest, slots);
    }
    model_.fits.push_back(std::move(fit));
    return at->second;
  }

  void Withdraw(Job& job) {
    const Withdrawal withdrawal = WithdrawGrants(*job.view, job.present, policy_, snapshot_.now);
    job.withdrawn = withdrawal.learners;
    job.cap = withdrawal.cap;
    KeepEarliest(withdrawal.again_at, model_.again_at);
  }

  void SetDemand(Job& job) {
    const JobView& view = *job.view;
    const QueueView& queue = *model_.queues[job.queue].view;
    job.weight = WeightOf(view, queue);
    const LearnerCount shards = ShardLimit(view);
    job.minimum = std::min(MinimumOf(view), shards);
    job.demand = view.max_learners;
    if (job.demand > shards) {
      job.demand = shards;
      job.limit = DemandLimit::kShards;
    }
    if (view.learners_asked && *view.learners_asked < job.demand) {
      job.demand = std::max(*view.learners_asked, job.minimum);
      job.limit = DemandLimit::kProgram;
    }
    if (job.cap && job.cap->until > snapshot_.now && job.cap->learners < job.demand) {
      job.demand = job.cap->learners;
      job.limit = DemandLimit::kCap;
    }
    LimitBySpeed(queue, model_.efficient_speeds, job);
  }

  // A learner that holds its GPUs may stay wherever it is; a gated one only on a node where it
  // could be created too.
  bool MayStay(const Job& job, const LearnerView& learner) const {
    if (learner.state == LearnerState::kLeaving || IsWithdrawn(*job.view, learner, snapshot_.now)) {
      return false;
    }
    return learner.state != LearnerState::kGated ||
           std::ranges::binary_search(model_.fits[job.fit].nodes, model_.NodeNamed(learner.node));
  }

  struct Held {
    const LearnerView* learner;
    NodeIndex node;
    // The widest domain first: how many learners of the job are there, negative, and which domain
    // it is. If the job spreads: how many are before this one.
    std::array<int, 2 * (kMaxTopologyKeys + 1)> rank{};
  };

  // Learners that are alone in their domain leave first, or, if the job spreads, those that have
  // most others there.
  void RankHeld(const JobView& job, std::vector<Held>& held) const {
    const Topology& topology = model_.topology;
    const bool spreads = job.placement == PlacementPolicy::kSpread;
    for (auto each = held.begin(); each != held.end(); ++each) {
      for (int level = 0; level <= topology.last_level(); ++level) {
        const int domain = topology.DomainOf(each->node, level);
        const auto others = std::count_if(
            held.begin(), spreads ? each : held.end(),
            [&](const Held& other) { return topology.DomainOf(other.node, level) == domain; });
        each->rank[2 * level] = static_cast<int>(spreads ? others : -others);
        each->rank[2 * level + 1] = spreads ? 0 : domain;
      }
    }
  }

  void SortHeld(Job& job) {
    if (job.present == 0) return;
    std::vector<Held> held;
    for (const LearnerView& learner : job.view->learners) {
      if (MayStay(job, learner)) held.push_back({&learner, model_.NodeNamed(learner.node)});
    }
    const auto by_rank = [](const Held& left, const Held& right) {
      return std::tuple(StateRank(*left.learner), left.rank, left.learner->created,
                        std::string_view(left.learner->name)) <
             std::tuple(StateRank(*right.learner), right.rank, right.learner->created,
                        std::string_view(right.learner->name));
    };
    if (job.view->placement == PlacementPolicy::kSpread) std::ranges::sort(held, by_rank);
    RankHeld(*job.view, held);
    std::ranges::sort(held, by_rank);  // the last ones leave first
    for (const Held& each : held) {
      job.held.push_back(each.learner);
      auto at = std::ranges::find(job.held_at, each.node, &HeldAt::node);
      if (at == job.held_at.end()) at = job.held_at.insert(at, HeldAt{.node = each.node});
      ++at->learners;
      if (each.learner->state == LearnerState::kGated) continue;
      ++at->started;
      model_.nodes[each.node].held_gpus += job.needs().gpus;
    }
  }

  void SetProtection(Job& job) {
    const JobView& view = *job.view;
    job.yields = view.share.yields_until && snapshot_.now < *view.share.yields_until;
    if (job.yields) AgainAt(*view.share.yields_until);
    const auto& below_since = view.share.below_minimum_since;
    if (below_since && snapshot_.now < *below_since + policy_.below_minimum_grace) {
      AgainAt(*below_since + policy_.below_minimum_grace);
    }
    if (view.share.desired == 0 || job.demand < job.minimum) return;
    const LearnerCount size =
        LargestEfficientSize(view, std::clamp(view.share.desired, job.minimum, job.demand));
    if (view.share.started && snapshot_.now < *view.share.started + view.min_runtime) {
      job.protected_size = size;
      AgainAt(*view.share.started + view.min_runtime);
    }
    if (view.share.resized && snapshot_.now < *view.share.resized + view.cooldown) {
      job.frozen_size = size;
      AgainAt(*view.share.resized + view.cooldown);
    }
  }

  void AgainAt(WallTime time) { KeepEarliest(time, model_.again_at); }

  const ClusterSnapshot& snapshot_;
  const PoolScope& scope_;
  const Policy& policy_;
  FitMemory& memory_;
  Model model_;
  std::vector<const NodeView*> node_views_;
  std::map<FitKey, int> fits_;
  std::optional<GpuKind> only_kind_;  // of all nodes' GPUs; absent: they have several
};

}  // namespace

LearnerCount Job::StartedAt(NodeIndex node) const {
  const auto at = std::ranges::find(held_at, node, &HeldAt::node);
  return at == held_at.end() ? 0 : at->started;
}

LearnerCount Job::HeldOn(NodeIndex node) const {
  const auto at = std::ranges::find(held_at, node, &HeldAt::node);
  return at == held_at.end() ? 0 : at->learners;
}

Model MakeModel(const ClusterSnapshot& snapshot, const PoolScope& scope, const Policy& policy,
                FitMemory& memory) {
  return Builder(snapshot, scope, policy, memory).Build();
}

}  // namespace pliant::planner
