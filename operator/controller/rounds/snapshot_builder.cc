#include "operator/controller/rounds/snapshot_builder.h"

#include <algorithm>
#include <chrono>
#include <iterator>
#include <ranges>
#include <tuple>
#include <unordered_map>
#include <utility>

#include "base/bounded.h"
#include "base/earliest.h"
#include "operator/controller/lifecycle/admission.h"
#include "operator/controller/lifecycle/problems.h"
#include "operator/controller/model/names.h"
#include "operator/controller/objects/placeholder_pod.h"
#include "operator/planner/feasibility.h"

namespace pliant::controller {
namespace {

using planner::operator+=;
using planner::operator-;

// Three thousand GPUs for a thousand years; the planner multiplies it by a priority.
constexpr double kMaxGpuSeconds = 1e14;

std::int64_t WholeGpuSeconds(double attained) {
  return attained > 0 ? static_cast<std::int64_t>(std::min(attained, kMaxGpuSeconds)) : 0;
}

constexpr std::int64_t kMaxGpusOfNode = 1024;

// A program may say anything of itself.
std::optional<std::int64_t> RemainingSeconds(const Progress& progress,
                                             const api::FrozenTraining& training) {
  if (!progress.total_steps || !progress.step || !progress.samples_per_second) return std::nullopt;
  const double samples = static_cast<double>(*progress.total_steps - *progress.step) *
                         static_cast<double>(training.global_batch_size);
  const double seconds = samples / *progress.samples_per_second;
  if (!(seconds >= 0 && seconds < static_cast<double>(api::kMaxSeconds))) return std::nullopt;
  return static_cast<std::int64_t>(seconds);
}

// With one learner; absent if its speed or its steps are not known.
std::optional<std::int64_t> AloneSeconds(const JobView& view) {
  const KnownSpeed& speed = view.soft_state.speed;
  const api::JobStatus& status = view.job->status;
  if (speed.curve.empty() || !status.progress.total_steps) return std::nullopt;
  const auto steps = static_cast<double>(*status.progress.total_steps - CommittedStep(view));
  const double seconds = std::max(steps, 0.0) * speed.alone_seconds_per_step;
  if (!(seconds < static_cast<double>(api::kMaxSeconds))) return std::nullopt;
  return static_cast<std::int64_t>(seconds);
}

// Whether its labels say that it belongs to a job.
bool IsLabelled(const api::Pod& pod) { return pod.meta.labels.contains(std::string(kLabelJobUid)); }

auto KeyOf(const kube::NamespacedName& key) { return std::tie(key.ns, key.name); }
auto KeyOf(const planner::JobView& job) { return std::tie(job.key.name_space, job.key.name); }
auto KeyOf(const planner::NodeView& node) {
  static const std::string no_namespace;
  return std::tie(no_namespace, node.name);
}

// Applies `changes` to `sorted`, and empties them.
template <typename T>
void Merge(std::map<kube::NamespacedName, std::optional<T>>& changes, std::vector<T>& sorted) {
  // Most changes only replace an item.
  std::erase_if(changes, [&](auto& change) {
    auto& [key, value] = change;
    const auto at =
        std::ranges::lower_bound(sorted, KeyOf(key), {}, [](const T& item) { return KeyOf(item); });
    const bool known = at != sorted.end() && KeyOf(*at) == KeyOf(key);
    if (known && value) *at = *std::move(value);
    const bool comes_or_goes = known != value.has_value();
    return !comes_or_goes;
  });
  if (changes.empty()) return;
  std::vector<T> merged;
  merged.reserve(sorted.size() + changes.size());
  auto old = sorted.begin();
  for (auto& [key, value] : std::exchange(changes, {})) {
    for (; old != sorted.end() && KeyOf(*old) < KeyOf(key); ++old)
      merged.push_back(std::move(*old));
    if (value) {
      merged.push_back(*std::move(value));
    } else {
      ++old;  // it is gone
    }
  }
  std::ranges::move(old, sorted.end(), std::back_inserter(merged));
  sorted = std::move(merged);
}

planner::NodeView NodeViewOf(const api::Node& node, const std::string& resource) {
  planner::NodeView view{.name = node.meta.name,
                         .allocatable = node.allocatable.CountedAs(resource),
                         .labels = node.meta.labels,
                         .ready = node.ready,
                         .schedulable = !node.unschedulable};
  // A kubelet may say anything: sums over all nodes stay numbers that a status can hold.
  view.allocatable.gpus = std::min<std::int64_t>(view.allocatable.gpus, kMaxGpusOfNode);
  for (const api::NodeTaint& taint : node.taints) {
    view.taints.push_back({.key = taint.key, .value = taint.value, .effect = taint.effect});
  }
  return view;
}

// Which resources count as GPUs in some pool.
std::set<std::string> ResourcesOf(const std::vector<planner::PoolView>& pools) {
  std::set<std::string> resources{""};
  for (const planner::PoolView& pool : pools) resources.insert(pool.resource);
  return resources;
}

std::optional<std::int64_t> GpusOf(const api::ResourceQuota& quota, const std::string& resource) {
  if (resource.empty()) return quota.gpus;
  const auto at = quota.others.find(resource);
  return at == quota.others.end() ? std::nullopt : std::optional(at->second);
}

planner::Resources ExcessOf(const planner::Resources& taken, const planner::Resources& counted) {
  const planner::Resources more = taken - counted;
  return {.gpus = std::max<std::int64_t>(more.gpus, 0),
          .cpu_millis = std::max<std::int64_t>(more.cpu_millis, 0),
          .memory_bytes = std::max<std::int64_t>(more.memory_bytes, 0)};
}

// nullopt for a learner that holds nothing: it has ended, or is deleted before it ran.
std::optional<planner::LearnerView> LearnerViewOf(const api::Pod& pod, const JobView& job) {
  using enum planner::LearnerState;
  if (pod.ended() || (IsGated(pod) && pod.deleting())) return std::nullopt;
  const std::string& name = pod.meta.name;
  planner::LearnerView view{.name = name, .node = NodeOf(pod), .created = pod.meta.created};
  if (const auto& progress = job.coordinator.progress) {
    view.member = std::ranges::contains(progress->members, name);
  }
  const auto leaving = job.soft_state.clocks.leaving_since.find(name);
  const auto starting = job.soft_state.clocks.starting_since.find(name);
  if (pod.deleting() || leaving != job.soft_state.clocks.leaving_since.end()) {
    view.state = kLeaving;
    view.since = pod.deleting() ? *pod.meta.deleted : leaving->second;
  } else if (IsGated(pod)) {
    view.state = kGated;
    view.since = pod.meta.created;
    const auto& refused = job.soft_state.refusals.grants;
    view.refused = refused && refused->gates.contains(name);
  } else {
    // A running learner may load for any time before it contacts the coordinator. But a coordinator
    // has to be reachable, and it has the same time for that as the learner had to run.
    const bool runs = HasStarted(job, pod) || (IsRunning(pod) && job.coordinator.reachable);
    view.state = runs ? kRunning : kStarting;
    view.unschedulable = !runs && pod.unschedulable;
    view.since = starting != job.soft_state.clocks.starting_since.end() ? starting->second
                                                                        : pod.meta.created;
    const api::ContainerStatus* program = api::FindContainer(pod, kLearnerContainer);
    if (program != nullptr && program->running_since) {
      view.since = std::max(view.since, *program->running_since);
    }
  }
  return view;
}

}  // namespace

planner::JobView PlannerView(const JobView& view) {
  const api::ElasticTrainingJob& job = *view.job;
  const std::optional<api::FrozenTraining> training = TrainingOf(view);
  planner::JobView planned = PlannedFrom(job.spec, NeedsOfLearner(view).get());
  planned.key = {.name_space = job.meta.name_space, .name = job.meta.name, .uid = job.meta.uid};
  planned.suspended = IsSuspended(view);
  planned.deleted = job.meta.deleted.has_value();
  planned.pool = view.membership.pool;
  planned.queue_refusal = view.membership.refusal;
  planned.learners_asked = job.status.progress.learners_asked;
  if (training) {
    planned.training.logical_shards = training->logical_shards;
    planned.training.reproducibility = training->reproducibility;
    planned.training.gpu_product = job.status.gpu_product;
    if (const auto& progress = view.coordinator.progress) {
      planned.training.remaining_seconds = RemainingSeconds(*progress, *PresentTrainingOf(view));
    }
    planned.training.speeds = view.soft_state.speed.curve;
    planned.training.alone_seconds = AloneSeconds(view);
    planned.training.hold_percent = HoldPercentOf(view, planned.training.remaining_seconds);
  } else {
    // A job that lost its admission still has learners: they are drained.
    planned.suspended = true;
  }
  planned.finished = job.status.finished();
  planned.submitted = job.meta.created;
  planned.waiting.since = view.soft_state.meter.waiting_since;
  planned.waiting.attained_gpu_seconds = WholeGpuSeconds(view.soft_state.meter.recent_gpu_seconds);
  planned.waiting.attained_at = view.soft_state.meter.until;
  planned.share.desired = job.status.share.desired_learners;
  planned.share.yields_until = view.soft_state.claims.yields_until;
  planned.share.admitted_minimum = job.status.share.admitted_minimum;
  planned.share.started = TimeOf(view, job.status.share.start_time);
  planned.share.resized = TimeOf(view, job.status.share.resize_time);
  planned.share.below_minimum_since = view.soft_state.clocks.below_minimum_since;
  planned.cap = view.soft_state.refusals.cap;
  planned.start_problem =
      StartProblemOf(view, view.soft_state.meter.until.value_or(job.meta.created));
  if (view.soft_state.refusals.grants)
    planned.refused_since = view.soft_state.refusals.grants->since;
  for (const api::Pod& pod : view.learners) {
    if (auto learner = LearnerViewOf(pod, view)) planned.learners.push_back(*std::move(learner));
  }
  for (const auto& [node, strikes] : view.soft_state.nodes.strikes) {
    planned.avoided.push_back({.node = node, .until = strikes.avoid_until});
  }
  return planned;
}

void SnapshotBuilder::SeeNode(const kube::Store<api::Node>::Change& change) {
  const auto& node = change.after;
  if (node != nullptr && node->allocatable.MayBeGpus()) {
    nodes_[change.key.name] = {node, ++node_versions_};
  } else {
    nodes_.erase(change.key.name);
  }
  changed_nodes_.insert(change.key.name);
}

void SnapshotBuilder::SeePod(const kube::Store<api::Pod>::Change& change) {
  const api::Pod& pod = change.after != nullptr ? *change.after : *change.before;
  if (IsPlaceholder(pod, operator_ns_)) return;
  if (change.before != nullptr && !IsLabelled(*change.before)) {
    if (const auto there = foreign_usage_.find(RoomTakenOn(*change.before));
        there != foreign_usage_.end()) {
      there->second.pods.erase(change.key);
      there->second.use.reset();
      if (there->second.pods.empty()) foreign_usage_.erase(there);
    }
  }
  SeeGpus(change);
  SeePending(change);
  labelled_.erase(change.key);
  unjudged_.erase(change.key);
  if (change.after == nullptr) return;
  if (IsLabelled(*change.after)) {
    labelled_.emplace(change.key, change.after);
  } else if (const std::string node = RoomTakenOn(*change.after); !node.empty()) {
    ForeignUsage& there = foreign_usage_[node];
    there.pods.insert_or_assign(change.key, change.after);
    there.use.reset();
  } else if (!RoomClaimedOn(*change.after).empty()) {
    unjudged_.emplace(change.key, change.after);
  }
}

void SnapshotBuilder::SeeGpus(const kube::Store<api::Pod>::Change& change) {
  const auto asks = [](const auto& pod) {
    return pod != nullptr && !IsLabelled(*pod) && !pod->ended() && pod->requests.MayBeGpus();
  };
  if (asks(change.after)) {
    others_gpus_[change.key.ns][change.key.name] = change.after;
  } else if (asks(change.before)) {
    const auto of_namespace = others_gpus_.find(change.key.ns);
    of_namespace->second.erase(change.key.name);
    if (of_namespace->second.empty()) others_gpus_.erase(of_namespace);
  }
}

void SnapshotBuilder::SeePending(const kube::Store<api::Pod>::Change& change) {
  const auto is_pending = [](const auto& pod) {
    return pod != nullptr && pod->unschedulable && !IsLabelled(*pod) && !pod->ended() &&
           !pod->deleting() && pod->asks.needs != nullptr && pod->nominated_node_name.empty();
  };
  if (is_pending(change.before)) {
    const auto of_namespace = pending_.find(change.key.ns);
    of_namespace->second.erase({change.before->meta.created, change.key.name});
    if (of_namespace->second.empty()) pending_.erase(of_namespace);
    pending_changed_ = true;
  }
  if (is_pending(change.after)) {
    pending_[change.key.ns][{change.after->meta.created, change.key.name}] = change.after;
    pending_changed_ = true;
  }
}

// Without a pool that yields, nobody reads them.
void SnapshotBuilder::FillPending() {
  if (!std::exchange(pending_changed_, false)) return;
  snapshot_.pending.clear();
  if (std::ranges::none_of(snapshot_.pools, &planner::PoolView::yields)) return;
  std::vector<const api::Pod*> pods;
  for (const auto& [name_space, of_namespace] : pending_) {
    for (const auto& [age, pod] : of_namespace | std::views::take(kMaxPendingOfNamespace)) {
      pods.push_back(pod.get());
    }
  }
  if (pods.size() > kMaxPending) {
    const auto age = [](const api::Pod* pod) {
      return std::tie(pod->meta.created, pod->meta.name_space, pod->meta.name);
    };
    std::ranges::nth_element(pods, pods.begin() + kMaxPending, {}, age);
    pods.resize(kMaxPending);
    std::ranges::sort(pods, {}, age);
  }
  for (const std::string& resource : ResourcesOf(snapshot_.pools)) {
    for (const api::Pod* pod : pods) {
      const std::int64_t gpus = pod->requests.GpusOf(resource);
      if (gpus == 0) continue;
      snapshot_.pending.push_back({.name_space = pod->meta.name_space,
                                   .name = pod->meta.name,
                                   .resource = resource,
                                   .gpus = gpus,
                                   .asks = pod->asks,
                                   .since = pod->meta.created});
    }
  }
}

void SnapshotBuilder::SeeQuota(const kube::Store<api::ResourceQuota>::Change& change) {
  auto& of_namespace = quotas_[change.key.ns];
  of_namespace.erase(change.key.name);
  if (change.after != nullptr && (change.after->gpus || !change.after->others.empty())) {
    of_namespace[change.key.name] = *change.after;
  }
  if (of_namespace.empty()) quotas_.erase(change.key.ns);
}

// A namespace's budget is the least of its quotas, minus the GPUs that other pods ask for.
void SnapshotBuilder::FillBudgets(const Ours& ours) {
  snapshot_.budgets.clear();
  const std::set<std::string> resources = ResourcesOf(snapshot_.pools);
  for (const auto& [key, resource] : std::views::cartesian_product(quotas_, resources)) {
    const auto& [name_space, quotas] = key;
    std::optional<std::int64_t> least;
    for (const auto& [name, quota] : quotas) {
      const std::optional<std::int64_t> gpus = GpusOf(quota, resource);
      if (gpus && (!least || *gpus < *least)) least = gpus;
    }
    if (!least) continue;
    std::int64_t left = *least;
    if (const auto others = others_gpus_.find(name_space); others != others_gpus_.end()) {
      for (const auto& [name, pod] : others->second) {
        left = BoundedDifference(left, pod->requests.GpusOf(resource));
      }
    }
    for (auto pod = labelled_.lower_bound({name_space, ""});
         pod != labelled_.end() && pod->first.ns == name_space; ++pod) {
      const bool counts = !pod->second->ended() && !ours.contains(pod->second->meta.uid);
      if (counts) left = BoundedDifference(left, pod->second->requests.GpusOf(resource));
    }
    snapshot_.budgets.push_back({name_space, std::max<std::int64_t>(left, 0), resource});
  }
}

const UseOfNode& SnapshotBuilder::ForeignUsage::Use(const std::string& counted) {
  if (!use || resource != counted) {
    use.emplace();
    resource = counted;
    for (const auto& [key, pod] : pods) use->Add(key.ns, pod->requests.CountedAs(resource));
  }
  return *use;
}

void SnapshotBuilder::SeeJob(const kube::NamespacedName& key, const JobView* planned) {
  learners_.erase(key);
  std::optional<planner::JobView>& view = changed_jobs_[key];
  view.reset();
  if (planned == nullptr) return;
  view = PlannerView(*planned);
  if (planned->learners.empty()) return;
  Learners& learners = learners_[key];
  learners.needs = view->needs.resources;
  for (const api::Pod& pod : planned->learners) learners.uids.push_back(pod.meta.uid);
}

SnapshotBuilder::Ours SnapshotBuilder::OurLearners() const {
  Ours ours;
  for (const auto& [job, learners] : learners_) {
    for (const std::string& uid : learners.uids) ours.emplace(uid, &learners.needs);
  }
  return ours;
}

void SnapshotBuilder::FillForeign(const Ours& ours) {
  struct Place {
    planner::NodeView* node = nullptr;
    std::string resource;  // of its pool
    UseOfNode use;
  };
  std::unordered_map<std::string_view, Place> places;
  for (planner::NodeView& node : snapshot_.nodes) {
    Place& place = places[node.name];
    place = {.node = &node, .resource = book_.ResourceOf(node.pool), .use = {}};
    if (const auto here = foreign_usage_.find(node.name); here != foreign_usage_.end()) {
      place.use = here->second.Use(place.resource);
    }
  }
  std::vector<const api::Pod*> unjudged;
  for (const auto& [key, pod] : unjudged_) unjudged.push_back(pod.get());
  for (const auto& [key, pod] : labelled_) {
    const auto counted = ours.find(pod->meta.uid);
    std::string node = RoomTakenOn(*pod);
    if (counted != ours.end() && node.empty()) node = RoomClaimedOn(*pod);
    if (counted == ours.end() && node.empty()) unjudged.push_back(pod.get());
    const auto there = places.find(node);
    if (there == places.end()) continue;
    Place& place = there->second;
    const planner::Resources taken = pod->requests.CountedAs(place.resource);
    // A learner counts with its job's needs; what it was admitted with beyond those is foreign use.
    place.use.Add(key.ns, counted == ours.end() ? taken : ExcessOf(taken, *counted->second));
  }
  again_at_.reset();
  for (const api::Pod* pod : unjudged) {
    const auto there = places.find(RoomClaimedOn(*pod));
    const WallTime until = pod->meta.created + kUnjudged;
    if (there == places.end() || until <= snapshot_.now) continue;
    KeepEarliest(until, again_at_);
    Place& place = there->second;
    const planner::Resources taken = pod->requests.CountedAs(place.resource);
    // The scheduler is about to refuse a pod that would not fit next to the others.
    if (planner::Fits(taken, place.node->allocatable - place.use.sum))
      place.use.Add(pod->meta.name_space, taken);
  }
  for (auto& [name, place] : places) {
    place.node->foreign = place.use.sum;
    place.node->foreign_users = place.use.Users();
  }
}

void SnapshotBuilder::FillQueues() {
  if (book_version_ == book_.version()) return;
  book_version_ = book_.version();
  snapshot_.queues = book_.QueueViews();
  snapshot_.pools = book_.PoolViews();
  pending_changed_ = true;
  // Any node may be in another pool now, which may count another resource as GPUs.
  for (const auto& [name, seen] : nodes_) changed_nodes_.insert(name);
}

// nullopt: it offers nothing that its pool counts as GPUs.
std::optional<planner::NodeView> SnapshotBuilder::ViewOf(const api::Node& node) const {
  const std::string pool = book_.PoolOf(node.meta.labels);
  planner::NodeView view = NodeViewOf(node, book_.ResourceOf(pool));
  if (view.allocatable.gpus == 0) return std::nullopt;
  view.pool = pool;
  return view;
}

void SnapshotBuilder::FillNodes() {
  Changes<planner::NodeView> views;
  for (const std::string& name : std::exchange(changed_nodes_, {})) {
    std::optional<planner::NodeView>& view = views[{"", name}];
    const auto seen = nodes_.find(name);
    if (seen == nodes_.end()) continue;
    view = ViewOf(*seen->second.node);
    if (view) view->version = {seen->second.version};
  }
  Merge(views, snapshot_.nodes);
}

const planner::ClusterSnapshot& SnapshotBuilder::Frame() {
  FillQueues();
  FillNodes();
  return snapshot_;
}

const planner::ClusterSnapshot& SnapshotBuilder::Build(WallTime now) {
  snapshot_.now = now;
  Frame();
  Merge(changed_jobs_, snapshot_.jobs);
  const Ours ours = OurLearners();
  FillForeign(ours);
  FillBudgets(ours);
  FillPending();
  return snapshot_;
}

}  // namespace pliant::controller
