#include <algorithm>
#include <map>
#include <string_view>
#include <tuple>
#include <vector>

#include "operator/planner/feasibility.h"
#include "operator/planner/plan.h"

namespace pliant::planner {
namespace {

struct Candidate {
  const JobView* job = nullptr;
  const LearnerView* learner = nullptr;
};

}  // namespace

std::vector<GateOpening> OpenGates(const ClusterSnapshot& snapshot,
                                   const std::vector<Decision>& decisions) {
  std::map<std::string_view, Resources> free;
  for (const NodeView& node : snapshot.nodes) {
    if (node.ready && node.schedulable) free[node.name] = node.allocatable - node.foreign;
  }
  std::map<std::string_view, const Decision*> decision_of;  // by uid
  std::vector<Candidate> candidates;
  for (const Decision& decision : decisions) {
    if (!decision.keep.empty()) decision_of[decision.job.uid] = &decision;
  }
  for (const JobView& job : snapshot.jobs) {
    const auto decision = decision_of.find(job.key.uid);
    for (const LearnerView& learner : job.learners) {
      const auto node = free.find(learner.node);
      if (node == free.end()) continue;
      if (learner.state != LearnerState::kGated) {
        node->second -= job.needs.resources;
      } else if (decision != decision_of.end() &&
                 std::ranges::contains(decision->second->keep, learner.name)) {
        candidates.push_back({&job, &learner});
      }
    }
  }
  // The learner that has waited longest goes first.
  std::ranges::sort(candidates, [](const Candidate& left, const Candidate& right) {
    return std::tie(left.learner->created, left.job->key, left.learner->name) <
           std::tie(right.learner->created, right.job->key, right.learner->name);
  });
  std::vector<GateOpening> open;
  for (const auto& [job, learner] : candidates) {
    Resources& room = free.at(learner->node);
    if (!Fits(job->needs.resources, room)) continue;
    room -= job->needs.resources;
    open.push_back({.job = job->key, .learner = learner->name, .node = learner->node});
  }
  return open;
}

}  // namespace pliant::planner
