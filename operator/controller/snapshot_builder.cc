#include "operator/controller/snapshot_builder.h"

#include <algorithm>
#include <chrono>
#include <map>
#include <optional>
#include <set>
#include <string_view>
#include <utility>

#include "operator/controller/names.h"

namespace pliant::controller {
namespace {

planner::Resources Of(const api::Resources& resources) {
  return {.gpus = resources.gpus,
          .cpu_millis = resources.cpu_millis,
          .memory_bytes = resources.memory_bytes};
}

void Add(const api::Resources& more, planner::Resources& sum) {
  sum.gpus += more.gpus;
  sum.cpu_millis += more.cpu_millis;
  sum.memory_bytes += more.memory_bytes;
}

planner::NodeView NodeViewOf(const api::Node& node) {
  planner::NodeView view{.name = node.meta.name,
                         .allocatable = Of(node.allocatable),
                         .labels = node.meta.labels,
                         .ready = node.ready,
                         .schedulable = !node.unschedulable};
  for (const api::NodeTaint& taint : node.taints) {
    view.taints.push_back({.key = taint.key, .value = taint.value, .effect = taint.effect});
  }
  return view;
}

// Where a pod that is not ours takes room; "" where it takes none yet. One that is held by a gate
// takes none: also a learner of a job that is gone.
std::string RoomTakenOn(const api::Pod& pod) {
  if (pod.ended()) return "";
  if (!pod.node_name.empty()) return pod.node_name;
  if (!pod.scheduling_gates.empty()) return "";
  return pod.nominated_node_name.empty() ? pod.pinned_node : pod.nominated_node_name;
}

// Nothing for a learner that holds nothing: it has ended, or is deleted before it ran.
std::optional<planner::LearnerView> LearnerViewOf(const api::Pod& pod, const JobView& job) {
  using enum planner::LearnerState;
  if (pod.ended() || (IsGated(pod) && pod.deleting())) return std::nullopt;
  const std::string& name = pod.meta.name;
  planner::LearnerView view{.name = name, .node = NodeOf(pod), .created = pod.meta.created};
  if (const auto& progress = job.coordinator.progress) {
    view.member = std::ranges::contains(progress->members, name);
  }
  const auto leaving = job.memory.leaving_since.find(name);
  const auto starting = job.memory.starting_since.find(name);
  if (pod.deleting() || leaving != job.memory.leaving_since.end()) {
    view.state = kLeaving;
    view.since = pod.deleting() ? *pod.meta.deleted : leaving->second;
  } else if (IsGated(pod)) {
    view.state = kGated;
    view.since = pod.meta.created;
  } else {
    view.state = IsRunning(pod) ? kRunning : kStarting;
    view.since = starting != job.memory.starting_since.end() ? starting->second : pod.meta.created;
  }
  return view;
}

}  // namespace

planner::JobView PlannerView(const JobView& view) {
  const api::ElasticTrainingJob& job = view.job;
  const auto& training = job.status.training;
  planner::JobView planned{
      .key = {.name_space = job.meta.name_space, .name = job.meta.name, .uid = job.meta.uid},
      .queue = job.spec.queue,
      .priority = job.spec.priority,
      .learners_min = job.spec.elastic.min_learners,
      .learners_max = job.spec.elastic.max_learners,
      .learners_asked = view.memory.learners_asked,
      .logical_shards = training ? training->logical_shards : 1,
      .reproducibility = training && training->reproducibility == api::Reproducibility::kStatistical
                             ? planner::Reproducibility::kStatistical
                             : planner::Reproducibility::kBitwise,
      .needs = view.needs,
      // One that lost its admission has its learners still: they are let go.
      .suspended = job.spec.suspend || !IsAdmitted(job.status),
      .finished = job.status.finished() || job.meta.deleted.has_value(),
      .submitted = job.meta.created,
      .attained_gpu_seconds = static_cast<std::int64_t>(view.memory.gpu_seconds),
      .learners_desired = job.status.desired_learners,
      .started = job.status.start_time,
      .resized = job.status.resize_time,
      .below_minimum_since = view.memory.below_minimum_since,
      .min_runtime = job.spec.resize.min_runtime,
      .cooldown = job.spec.resize.cooldown,
      .cap = view.memory.cap,
  };
  for (const api::Pod& pod : view.learners) {
    if (auto learner = LearnerViewOf(pod, view)) planned.learners.push_back(*std::move(learner));
  }
  for (const auto& [node, strikes] : view.memory.nodes) {
    planned.avoided.push_back({.node = node, .until = strikes.avoid_until});
  }
  return planned;
}

planner::ClusterSnapshot BuildSnapshot(const std::vector<std::shared_ptr<const api::Node>>& nodes,
                                       const std::vector<std::shared_ptr<const api::Pod>>& pods,
                                       const std::vector<const JobView*>& jobs, WallTime now) {
  planner::ClusterSnapshot snapshot{.now = now};
  std::map<std::string_view, std::size_t> node_index;
  for (const auto& node : nodes) {
    if (node->allocatable.gpus <= 0) continue;
    node_index.emplace(node->meta.name, snapshot.nodes.size());
    snapshot.nodes.push_back(NodeViewOf(*node));
  }
  std::set<std::string_view> learners;  // by uid
  for (const JobView* job : jobs) {
    snapshot.jobs.push_back(PlannerView(*job));
    for (const api::Pod& pod : job->learners) learners.insert(pod.meta.uid);
  }
  for (const auto& pod : pods) {
    if (learners.contains(pod->meta.uid)) continue;
    const auto node = node_index.find(RoomTakenOn(*pod));
    if (node != node_index.end()) Add(pod->requests, snapshot.nodes[node->second].foreign);
  }
  return snapshot;
}

}  // namespace pliant::controller
