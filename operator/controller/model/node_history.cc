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

}  // namespace

void ObserveNodes(const std::vector<api::Pod>& learners, const LearnerClocks& clocks, WallTime now,
                  NodeHistory& nodes) {
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
}

}  // namespace pliant::controller
