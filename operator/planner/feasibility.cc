#include "operator/planner/feasibility.h"

#include <algorithm>
#include <charconv>
#include <optional>

namespace pliant::planner {
namespace {

std::optional<std::int64_t> WholeNumber(std::string_view text) {
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

// Gt and Lt: both sides must be whole numbers, otherwise the requirement does not hold.
bool Compares(const NodeRequirement& requirement, const std::string& label) {
  if (requirement.values.size() != 1) return false;
  const auto left = WholeNumber(label);
  const auto right = WholeNumber(requirement.values.front());
  if (!left || !right) return false;
  return requirement.op == NodeOperator::kGt ? *left > *right : *left < *right;
}

bool LabelsFit(const NodeView& node, const PodNeeds& needs) {
  for (const auto& [key, value] : needs.node_selector) {
    const auto label = node.labels.find(key);
    if (label == node.labels.end() || label->second != value) return false;
  }
  if (needs.node_affinity.empty()) return true;
  return std::ranges::any_of(needs.node_affinity, [&](const std::vector<NodeRequirement>& term) {
    // As in Kubernetes, a term that requires nothing matches nothing.
    return !term.empty() && std::ranges::all_of(term, [&](const NodeRequirement& requirement) {
      return Holds(requirement, node.labels);
    });
  });
}

}  // namespace

std::string_view ToString(Obstacle obstacle) {
  switch (obstacle) {
    case Obstacle::kNone:
      return "fit";
    case Obstacle::kNotReady:
      return "not ready";
    case Obstacle::kCordoned:
      return "cordoned";
    case Obstacle::kTaint:
      return "with a taint that it does not tolerate";
    case Obstacle::kLabels:
      return "outside its nodeSelector or node affinity";
    case Obstacle::kGpus:
      return "with too few GPUs";
    case Obstacle::kCpu:
      return "with too little CPU";
    case Obstacle::kMemory:
      return "with too little memory";
    case Obstacle::kProduct:
      return "of another GPU product";
    case Obstacle::kDriver:
      return "with another version of the GPU driver";
  }
  return "";
}

bool Tolerates(const std::vector<Toleration>& tolerations, const Taint& taint) {
  return std::ranges::any_of(tolerations, [&](const Toleration& toleration) {
    if (!toleration.effect.empty() && toleration.effect != taint.effect) return false;
    if (toleration.key.empty()) return toleration.exists;
    if (toleration.key != taint.key) return false;
    return toleration.exists || toleration.value == taint.value;
  });
}

bool Holds(const NodeRequirement& requirement, const std::map<std::string, std::string>& labels) {
  const auto label = labels.find(requirement.key);
  const bool present = label != labels.end();
  const auto listed = [&] {
    return present && std::ranges::contains(requirement.values, label->second);
  };
  switch (requirement.op) {
    case NodeOperator::kIn:
      return listed();
    case NodeOperator::kNotIn:
      return !listed();
    case NodeOperator::kExists:
      return present;
    case NodeOperator::kDoesNotExist:
      return !present;
    case NodeOperator::kGt:
    case NodeOperator::kLt:
      return present && Compares(requirement, label->second);
  }
  return false;
}

Obstacle ObstacleInLooks(const NodeView& node, const PodNeeds& needs) {
  const bool repelled = std::ranges::any_of(node.taints, [&](const Taint& taint) {
    return taint.effect != "PreferNoSchedule" && !Tolerates(needs.tolerations, taint);
  });
  if (repelled) return Obstacle::kTaint;
  return LabelsFit(node, needs) ? Obstacle::kNone : Obstacle::kLabels;
}

Obstacle ObstacleOn(const NodeView& node, const PodNeeds& needs) {
  return ObstacleOn(node, needs, ObstacleInLooks(node, needs));
}

Obstacle ObstacleOn(const NodeView& node, const PodNeeds& needs, Obstacle looks) {
  if (!node.ready) return Obstacle::kNotReady;
  if (!node.schedulable) return Obstacle::kCordoned;
  if (looks != Obstacle::kNone) return looks;
  const Resources room = node.allocatable - node.foreign;
  if (needs.resources.gpus > room.gpus) return Obstacle::kGpus;
  if (needs.resources.cpu_millis > room.cpu_millis) return Obstacle::kCpu;
  if (needs.resources.memory_bytes > room.memory_bytes) return Obstacle::kMemory;
  return Obstacle::kNone;
}

std::int64_t TimesIn(const Resources& room, const Resources& needs) {
  std::int64_t times = room.gpus / needs.gpus;
  if (needs.cpu_millis > 0) times = std::min(times, room.cpu_millis / needs.cpu_millis);
  if (needs.memory_bytes > 0) times = std::min(times, room.memory_bytes / needs.memory_bytes);
  return std::max<std::int64_t>(times, 0);
}

}  // namespace pliant::planner
