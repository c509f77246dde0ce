#include "operator/controller/rounds/snapshot_json.h"

#include <nlohmann/json.hpp>
#include <optional>
#include <string_view>

namespace pliant::controller {
namespace {

using nlohmann::json;

// Milliseconds since 1970: exact, unlike a text of whole seconds.
json Time(planner::WallTime time) { return time.time_since_epoch().count(); }
json Time(const std::optional<planner::WallTime>& time) { return time ? Time(*time) : json(); }

json Encode(const planner::Resources& resources) {
  return {{"gpus", resources.gpus},
          {"cpuMillis", resources.cpu_millis},
          {"memoryBytes", resources.memory_bytes}};
}

json Encode(const planner::NodeView& node) {
  json taints = json::array();
  for (const planner::Taint& taint : node.taints) {
    taints.push_back({{"key", taint.key}, {"value", taint.value}, {"effect", taint.effect}});
  }
  return {{"name", node.name},
          {"allocatable", Encode(node.allocatable)},
          {"foreign", Encode(node.foreign)},
          {"labels", node.labels},
          {"taints", std::move(taints)},
          {"ready", node.ready},
          {"schedulable", node.schedulable}};
}

std::string_view NameOf(planner::NodeOperator op) {
  switch (op) {
    case planner::NodeOperator::kIn:
      return "In";
    case planner::NodeOperator::kNotIn:
      return "NotIn";
    case planner::NodeOperator::kExists:
      return "Exists";
    case planner::NodeOperator::kDoesNotExist:
      return "DoesNotExist";
    case planner::NodeOperator::kGt:
      return "Gt";
    case planner::NodeOperator::kLt:
      return "Lt";
  }
  return "";
}

std::string_view NameOf(planner::LearnerState state) {
  switch (state) {
    case planner::LearnerState::kGated:
      return "Gated";
    case planner::LearnerState::kStarting:
      return "Starting";
    case planner::LearnerState::kRunning:
      return "Running";
    case planner::LearnerState::kLeaving:
      return "Leaving";
  }
  return "";
}

json Encode(const planner::PodNeeds& needs) {
  json tolerations = json::array();
  for (const planner::Toleration& toleration : needs.tolerations) {
    tolerations.push_back({{"key", toleration.key},
                           {"value", toleration.value},
                           {"effect", toleration.effect},
                           {"exists", toleration.exists}});
  }
  json affinity = json::array();
  for (const auto& term : needs.node_affinity) {
    json requirements = json::array();
    for (const planner::NodeRequirement& requirement : term) {
      requirements.push_back({{"key", requirement.key},
                              {"operator", NameOf(requirement.op)},
                              {"values", requirement.values}});
    }
    affinity.push_back(std::move(requirements));
  }
  return {{"resources", Encode(needs.resources)},
          {"tolerations", std::move(tolerations)},
          {"nodeSelector", needs.node_selector},
          {"nodeAffinity", std::move(affinity)}};
}

json Encode(const planner::LearnerView& learner) {
  return {{"name", learner.name},           {"node", learner.node},
          {"state", NameOf(learner.state)}, {"created", Time(learner.created)},
          {"since", Time(learner.since)},   {"member", learner.member},
          {"refused", learner.refused}};
}

json Encode(const planner::JobView& job) {
  json learners = json::array();
  for (const planner::LearnerView& learner : job.learners) learners.push_back(Encode(learner));
  json avoided = json::array();
  for (const planner::AvoidedNode& node : job.avoided) {
    avoided.push_back({{"node", node.node}, {"until", Time(node.until)}});
  }
  json cap;
  if (job.cap) {
    cap = {{"learners", job.cap->learners},
           {"until", Time(job.cap->until)},
           {"strikes", job.cap->strikes}};
  }
  return {{"namespace", job.key.name_space},
          {"name", job.key.name},
          {"queue", job.queue},
          {"priority", job.priority},
          {"minLearners", job.min_learners},
          {"maxLearners", job.max_learners},
          {"learnersAsked", job.learners_asked ? json(*job.learners_asked) : json()},
          {"logicalShards", job.logical_shards},
          {"bitwise", job.reproducibility == planner::Reproducibility::kBitwise},
          {"needs", Encode(job.needs)},
          {"suspended", job.suspended},
          {"finished", job.finished},
          {"submitted", Time(job.submitted)},
          {"waitingSince", Time(job.waiting_since)},
          {"attainedGpuSeconds", job.attained_gpu_seconds},
          {"desiredLearners", job.learners_desired},
          {"started", Time(job.started)},
          {"resized", Time(job.resized)},
          {"belowMinimumSince", Time(job.below_minimum_since)},
          {"minRuntimeSeconds", job.min_runtime.count()},
          {"cooldownSeconds", job.cooldown.count()},
          {"startTimeoutSeconds", job.start_timeout.count()},
          {"refusedSince", Time(job.refused_since)},
          {"learners", std::move(learners)},
          {"cap", std::move(cap)},
          {"avoided", std::move(avoided)}};
}

}  // namespace

std::string SnapshotJson(const planner::ClusterSnapshot& snapshot) {
  json nodes = json::array();
  for (const planner::NodeView& node : snapshot.nodes) nodes.push_back(Encode(node));
  json jobs = json::array();
  for (const planner::JobView& job : snapshot.jobs) jobs.push_back(Encode(job));
  json budgets = json::object();
  for (const planner::GpuBudget& budget : snapshot.budgets)
    budgets[budget.name_space] = budget.gpus;
  return json{{"now", Time(snapshot.now)},
              {"nodes", std::move(nodes)},
              {"jobs", std::move(jobs)},
              {"budgets", std::move(budgets)}}
      .dump(2, ' ', false, json::error_handler_t::replace);
}

}  // namespace pliant::controller
