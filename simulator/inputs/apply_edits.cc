#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "base/format.h"
#include "base/result.h"
#include "operator/planner/cluster_snapshot.h"
#include "operator/replay/text_table.h"
#include "simulator/inputs/edits.h"
#include "simulator/inputs/node_groups.h"
#include "simulator/inputs/scenario_queues.h"
#include "simulator/inputs/values.h"

namespace pliant::simulator {
namespace {

using planner::ClusterSnapshot;
using planner::JobView;
using planner::NodeView;
using planner::QueueView;

// Every new node has a copy of the labels of one that exists, of any size.
constexpr std::size_t kMaxCopiedBytes = std::size_t{256} << 20;
// More than any pod asks for, far from overflowing a sum over all nodes.
constexpr std::int64_t kAmpleCpuMillis = 1'000'000;
constexpr std::int64_t kAmpleMemoryBytes = std::int64_t{1} << 44;

void Change(QueueView& queue, const WeightChange& to) { queue.weight = to.weight; }
void Change(QueueView& queue, const GuaranteeChange& to) { queue.guaranteed_gpus = to.gpus; }
void Change(QueueView& queue, const LimitChange& to) { queue.limit_gpus = to.gpus; }
void Change(QueueView& queue, const LendingLimitChange& to) { queue.lending_limit_gpus = to.gpus; }
void Change(QueueView& queue, planner::QueuePolicy to) { queue.policy = to; }
void Change(QueueView& queue, const BiasChange& to) {
  queue.favors_short_jobs = to.favors_short_jobs;
}
void Change(QueueView& queue, planner::QueueStop to) { queue.stop = to; }

void Change(JobView& job, const PriorityChange& to) { job.priority = to.priority; }
void Change(JobView& job, const MinLearnersChange& to) { job.min_learners = to.learners; }
void Change(JobView& job, const MaxLearnersChange& to) { job.max_learners = to.learners; }
void Change(JobView& job, const SuspensionChange& to) { job.suspended = to.suspended; }

template <typename Items>
std::set<std::string> NamesOf(const Items& items) {
  std::set<std::string> names;
  for (const auto& item : items) names.insert(item.name);
  return names;
}

class Editor {
 public:
  explicit Editor(ClusterSnapshot snapshot) : snapshot_(std::move(snapshot)) {}

  Status Apply(const EditQueue& edit) {
    ASSIGN_OR_RETURN(QueueView* const queue, Find(edit));
    std::visit([&](const auto& to) { Change(*queue, to); }, edit.change);
    return {};
  }
  Status Apply(const EditJob& edit) {
    ASSIGN_OR_RETURN(JobView* const job, Find(edit));
    std::visit([&](const auto& to) { Change(*job, to); }, edit.change);
    return {};
  }
  Status Apply(const AddNodes& edit);
  Status Apply(const RemoveNode& edit);

  // Checks the rules between fields of what an edit changed, after all edits.
  Status Check(const EditQueue& edit) {
    ASSIGN_OR_RETURN(const QueueView* const queue, Find(edit));
    return CheckQueue(*queue);
  }
  Status Check(const EditJob& edit) {
    ASSIGN_OR_RETURN(const JobView* const job, Find(edit));
    if (job->min_learners <= job->max_learners) return {};
    return Invalid(Format("minLearners is {}, more than maxLearners, which is {}; edit both",
                          job->min_learners, job->max_learners));
  }
  Status Check(const AddNodes&) const { return {}; }
  Status Check(const RemoveNode&) const { return {}; }

  ClusterSnapshot Take() { return std::move(snapshot_); }

 private:
  Result<QueueView*> Find(const EditQueue& edit);
  Result<JobView*> Find(const EditJob& edit);

  ClusterSnapshot snapshot_;
};

Result<QueueView*> Editor::Find(const EditQueue& edit) {
  std::vector<QueueView>& queues = snapshot_.queues;
  const auto at = std::ranges::find(queues, edit.queue, &QueueView::name);
  if (at != queues.end()) return &*at;
  if (edit.queue == planner::kBuiltInQueue) return &queues.emplace_back();
  std::set<std::string> names = NamesOf(queues);
  names.emplace(planner::kBuiltInQueue);
  return Invalid(Format("there is no queue '{}'; queues: {}", edit.queue, Listed(names)));
}

Result<JobView*> Editor::Find(const EditJob& edit) {
  const auto at = std::ranges::find_if(snapshot_.jobs, [&](const JobView& job) {
    return job.key.name_space == edit.job.name_space && job.key.name == edit.job.name;
  });
  if (at != snapshot_.jobs.end()) return &*at;
  std::set<std::string> names;
  for (const JobView& job : snapshot_.jobs) names.insert(ToString(job.key));
  return Invalid(Format("there is no job '{}/{}'; jobs: {}", edit.job.name_space, edit.job.name,
                        Listed(names)));
}

Status Editor::Apply(const AddNodes& edit) {
  std::vector<NodeView>& nodes = snapshot_.nodes;
  std::set<std::string> pools = NamesOf(snapshot_.pools);
  pools.emplace(planner::kBuiltInPool);
  if (!pools.contains(edit.pool)) {
    return Invalid(Format("there is no pool '{}'; pools: {}", edit.pool, Listed(pools)));
  }
  if (std::ssize(nodes) + edit.group.count > kMaxNodes) {
    return Invalid(Format("there would be {} nodes; at most {} are supported",
                          std::ssize(nodes) + edit.group.count, kMaxNodes));
  }
  NodeView model{.allocatable = {.cpu_millis = kAmpleCpuMillis, .memory_bytes = kAmpleMemoryBytes}};
  const auto first = std::ranges::find(nodes, edit.pool, &NodeView::pool);
  if (first != nodes.end()) {
    model.labels = first->labels;
    model.allocatable = first->allocatable;
  }
  std::size_t bytes = 0;
  for (const auto& [key, value] : model.labels) bytes += key.size() + value.size();
  if (bytes * static_cast<std::size_t>(edit.group.count) > kMaxCopiedBytes) {
    return Invalid(Format("the labels of node {} are too long for {} copies; add fewer nodes",
                          first->name, edit.group.count));
  }
  model.pool = edit.pool;
  model.allocatable.gpus = edit.group.gpus;
  const std::set<std::string> taken = NamesOf(nodes);
  std::int64_t added = 0;
  for (int number = 1; added < edit.group.count; ++number) {
    model.name = Format("new-{}", number);
    if (taken.contains(model.name)) continue;
    model.labels[planner::kHostnameLabel] = model.name;
    nodes.push_back(model);
    ++added;
  }
  return {};
}

Status Editor::Apply(const RemoveNode& edit) {
  const std::set<std::string> names = NamesOf(snapshot_.nodes);
  if (!names.contains(edit.node)) {
    return Invalid(Format("there is no node '{}'; nodes: {}", edit.node, Listed(names)));
  }
  std::erase_if(snapshot_.nodes, [&](const NodeView& node) { return node.name == edit.node; });
  for (JobView& job : snapshot_.jobs) {
    std::erase_if(job.learners,
                  [&](const planner::LearnerView& learner) { return learner.node == edit.node; });
  }
  return {};
}

std::unexpected<Error> Refused(const Edit& edit, const Error& error) {
  return Invalid(replay::Printable(Format("edit '{}': {}", edit.text, error.message)));
}

}  // namespace

Result<ClusterSnapshot> Apply(ClusterSnapshot snapshot, std::span<const Edit> edits) {
  Editor editor(std::move(snapshot));
  for (const Edit& edit : edits) {
    const Status applied =
        std::visit([&](const auto& change) { return editor.Apply(change); }, edit.change);
    if (!applied) return Refused(edit, applied.error());
  }
  for (const Edit& edit : edits) {
    const Status sound =
        std::visit([&](const auto& change) { return editor.Check(change); }, edit.change);
    if (!sound) return Refused(edit, sound.error());
  }
  return editor.Take();
}

}  // namespace pliant::simulator
