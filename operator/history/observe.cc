#include "operator/history/observe.h"

#include <algorithm>
#include <chrono>
#include <string_view>
#include <utility>

#include "base/bounded.h"
#include "operator/controller/model/names.h"
#include "operator/history/record.h"

namespace pliant::history {
namespace {

// Whether it holds its node's GPUs: the scheduler counts a pod from its binding to its end.
bool HoldsGpus(const api::Pod& pod) {
  return !pod.node_name.empty() && !pod.ended() && pod.requests.MayBeGpus();
}

std::vector<std::string> NodeIfHeld(const api::Pod& pod) {
  return HoldsGpus(pod) ? std::vector{pod.node_name} : std::vector<std::string>{};
}

// The job's name in a Subject.
std::string NameOf(const kube::NamespacedName& job) { return job.ns + "/" + job.name; }

kube::NamespacedName OwnerOf(const api::Pod& pod) {
  return {pod.meta.name_space, pod.meta.owner_name};
}

std::vector<std::string> OwnerIfHeld(const api::Pod& pod) {
  return HoldsGpus(pod) && !pod.meta.owner_name.empty() ? std::vector{NameOf(OwnerOf(pod))}
                                                        : std::vector<std::string>{};
}

// FNV-1a: the same in every process, unlike std::hash.
std::size_t SlotOf(const kube::NamespacedName& key) {
  std::uint64_t hash = 14695981039346656037U;
  for (const std::string_view part : {std::string_view(key.ns), std::string_view(key.name)})
    for (const char c : part) hash = (hash ^ static_cast<unsigned char>(c)) * 1099511628211U;
  return hash % kStatisticsSeconds;
}

template <typename Change>
std::string NameIn(const Change& change) {
  return change.key.name;
}

}  // namespace

Observer::Observer(Stores stores, const controller::QueueBook& book)
    : stores_(stores),
      book_(book),
      by_node_(stores_.pods.AddIndex(NodeIfHeld)),
      by_job_(stores_.pods.AddIndex(OwnerIfHeld)) {
  stores_.jobs.OnChange([this](const auto& change) { SeeJob(change); });
  stores_.pods.OnChange([this](const auto& change) { SeePod(change); });
  stores_.nodes.OnChange([this](const auto& change) { nodes_.insert(NameIn(change)); });
  stores_.queues.OnChange([this](const auto& change) { queues_.insert(NameIn(change)); });
  stores_.pools.OnChange([this](const auto& change) { pools_.insert(NameIn(change)); });
}

void Observer::SeeJob(const kube::Store<api::ElasticTrainingJob>::Change& change) {
  const auto& [key, before, after] = change;
  const bool same = before != nullptr && after != nullptr && before->meta.uid == after->meta.uid;
  if (!same) {
    // Pods may be seen before their job, and outlive it.
    LookAtNodesOf(key);
    jobs_.insert(key);
    return;
  }
  Values old = RecordOf(*before);
  Values now = RecordOf(*after);
  if (old == now) return;
  const bool only_statistics =
      WithoutStatistics(std::move(old)) == WithoutStatistics(std::move(now));
  (only_statistics ? statistics_[SlotOf(key)] : jobs_).insert(key);
}

void Observer::SeePod(const kube::Store<api::Pod>::Change& change) {
  for (const auto& pod : {change.before, change.after})
    if (pod != nullptr && HoldsGpus(*pod)) nodes_.insert(pod->node_name);
}

void Observer::LookAtNodesOf(const kube::NamespacedName& job) {
  for (const auto& pod : stores_.pods.Lookup(by_job_, NameOf(job))) nodes_.insert(pod->node_name);
}

void Observer::LookAtAllNodes() {
  for (const auto& node : stores_.nodes.All()) nodes_.insert(node->meta.name);
}

void Observer::LookAtStatistics(WallTime now) {
  const std::int64_t second =
      std::chrono::floor<std::chrono::seconds>(now).time_since_epoch().count();
  // A clock that was set back starts again.
  if (!second_ || second < *second_) second_ = second - 1;
  const std::int64_t first = std::max(*second_ + 1, second - kStatisticsSeconds + 1);
  for (std::int64_t each = first; each <= second; ++each)
    jobs_.merge(
        std::exchange(statistics_[static_cast<std::size_t>(each % kStatisticsSeconds)], {}));
  second_ = second;
}

std::optional<Values> Observer::RecordOfJob(const kube::NamespacedName& key) const {
  const auto job = stores_.jobs.Find(key);
  return job == nullptr ? std::nullopt : std::optional(RecordOf(*job));
}

void Observer::TakeNode(const std::string& name, std::vector<Observation>& taken) {
  const auto node = stores_.nodes.Find({"", name});
  const std::string pool = node != nullptr ? book_.PoolOf(node->meta.labels) : "";
  const std::string resource = book_.ResourceOf(pool);
  std::int64_t used = 0;
  std::map<kube::NamespacedName, std::int64_t> held;
  for (const kube::NamespacedName& job : held_[name]) held[job] = 0;
  for (const auto& pod : stores_.pods.Lookup(by_node_, name)) {
    const std::int64_t gpus = pod->requests.GpusOf(resource);
    used = BoundedSum(used, gpus);
    const auto job = stores_.jobs.Find(OwnerOf(*pod));
    if (job == nullptr || !controller::IsLearnerOf(*pod, job->meta)) continue;
    std::int64_t& of_job = held[OwnerOf(*pod)];
    of_job = BoundedSum(of_job, gpus);
  }
  std::set<kube::NamespacedName> here;
  for (const auto& [job, gpus] : held) {
    Observation& observation = taken.emplace_back();
    observation.subject = {.kind = Kind::kHeld, .name = NameOf(job), .node = name};
    if (gpus == 0) continue;
    observation.values = RecordOfHeld(gpus);
    here.insert(job);
  }
  if (here.empty()) {
    held_.erase(name);
  } else {
    held_[name] = std::move(here);
  }
  Observation& observation = taken.emplace_back();
  observation.subject = {.kind = Kind::kNode, .name = name, .node = ""};
  if (node == nullptr) return;
  const std::int64_t gpus = node->allocatable.GpusOf(resource);
  if (gpus > 0 || used > 0) observation.values = RecordOf(*node, pool, gpus, used);
}

std::vector<Observation> Observer::Take(WallTime now) {
  if (!stores_.synced()) return {};
  if (std::exchange(book_version_, book_.version()) != book_.version()) LookAtAllNodes();
  LookAtStatistics(now);
  std::vector<Observation> taken;
  for (const kube::NamespacedName& key : std::exchange(jobs_, {}))
    taken.push_back({{.kind = Kind::kJob, .name = NameOf(key), .node = ""}, RecordOfJob(key)});
  for (const std::string& name : std::exchange(nodes_, {})) TakeNode(name, taken);
  for (const std::string& name : std::exchange(queues_, {})) {
    const auto queue = stores_.queues.Find({"", name});
    taken.push_back({{.kind = Kind::kQueue, .name = name, .node = ""},
                     queue ? std::optional(RecordOf(*queue)) : std::nullopt});
  }
  for (const std::string& name : std::exchange(pools_, {})) {
    const auto pool = stores_.pools.Find({"", name});
    taken.push_back({{.kind = Kind::kPool, .name = name, .node = ""},
                     pool ? std::optional(RecordOf(*pool)) : std::nullopt});
  }
  return taken;
}

}  // namespace pliant::history
