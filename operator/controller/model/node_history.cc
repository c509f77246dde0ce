#include "operator/controller/model/node_history.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "operator/controller/model/job_view.h"
#include "operator/controller/model/learner_ending.h"

namespace pliant::controller {
namespace {

constexpr std::chrono::seconds kFirstAvoidance{5};
constexpr std::chrono::seconds kLongestAvoidance{600};
// A node's strikes are forgotten this long after its avoidance ended.
constexpr std::chrono::minutes kForgiveAfter{10};

// A learner that fails on an avoided node was placed there before the avoidance: a node that loses
// power with four learners on it has failed once.
void Strike(NodeStrikes& node, WallTime at) {
  if (at < node.avoid_until) return;
  const int doublings = std::min(node.count, 10);
  ++node.count;
  node.avoid_until = std::max(node.avoid_until,
                              at + std::min(kFirstAvoidance * (1 << doublings), kLongestAvoidance));
}

// Whether the operator asked it to leave, or somebody deleted its pod.
bool WasSentAway(const LearnerClocks& clocks, const api::Pod& pod) {
  return pod.deleting() || clocks.leaving_since.contains(pod.meta.name);
}

// Why it was evicted from its node; null: it was not. A pod that is preempted makes room for
// another pod, so its node is no worse than others.
const api::PodCondition* EvictionOf(const api::Pod& pod) {
  const api::PodCondition* target = api::FindCondition(pod, "DisruptionTarget");
  const bool evicted =
      target != nullptr && target->status && target->reason != "PreemptionByScheduler";
  return evicted && !NodeOf(pod).empty() ? target : nullptr;
}

// A taint that learners tolerate for a while would otherwise evict each of their successors, too.
std::vector<Eviction> ObserveEvictions(const std::vector<api::Pod>& learners, WallTime now,
                                       NodeHistory& nodes) {
  std::vector<Eviction> evictions;
  std::set<std::string> seen;
  for (const api::Pod& pod : learners) {
    const api::PodCondition* why = EvictionOf(pod);
    if (why == nullptr) continue;
    seen.insert(pod.meta.uid);
    if (nodes.evictions_seen.contains(pod.meta.uid)) continue;
    NodeStrikes& node = nodes.strikes[NodeOf(pod)];
    Strike(node, now);
    evictions.push_back({.pod = pod.meta.name,
                         .node = NodeOf(pod),
                         .why = why->reason + (why->message.empty() ? "" : ": " + why->message),
                         .avoid_until = node.avoid_until});
  }
  nodes.evictions_seen = std::move(seen);
  return evictions;
}

}  // namespace

std::vector<Eviction> ObserveNodes(const std::vector<api::Pod>& learners,
                                   const LearnerClocks& clocks, WallTime now, NodeHistory& nodes) {
  std::vector<Eviction> evictions = ObserveEvictions(learners, now, nodes);
  std::set<std::string> seen;
  for (const api::Pod& pod : learners) {
    const auto ending = EndingOf(pod);
    if (!ending || NodeOf(pod).empty()) continue;
    if (ending->end == LearnerEnd::kCompleted || ending->end == LearnerEnd::kDisrupted) continue;
    seen.insert(pod.meta.uid);
    if (nodes.ends_seen.contains(pod.meta.uid)) continue;
    // A learner that reports a drain which the operator did not request has not failed: somebody
    // else may have requested it. But its successor waits like that of a failed one, or learners
    // would be replaced without end.
    if (ending->end == LearnerEnd::kDrained && WasSentAway(clocks, pod)) continue;
    Strike(nodes.strikes[NodeOf(pod)], std::min(now, ending->finished.value_or(now)));
  }
  nodes.ends_seen = std::move(seen);
  std::erase_if(nodes.strikes,
                [&](const auto& entry) { return entry.second.avoid_until + kForgiveAfter < now; });
  return evictions;
}

}  // namespace pliant::controller
