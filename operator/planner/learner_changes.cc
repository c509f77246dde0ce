#include "operator/planner/learner_changes.h"

#include <algorithm>
#include <map>
#include <string>
#include <vector>

namespace pliant::planner {
namespace {

NewLearner NewLearnerOn(const Node& node) {
  NewLearner learner{.node = std::string(node.name)};
  const auto hostname = node.view->labels.find(kHostnameLabel);
  if (hostname != node.view->labels.end()) learner.hostname = hostname->second;
  return learner;
}

}  // namespace

void SortLearners(const Model& model, JobIndex index, const Assignment& placed,
                  Decision& decision) {
  const Job& job = model.jobs[index];
  std::map<NodeIndex, LearnerCount> room;
  for (const Claim& claim : placed.ClaimsOf(index)) room[claim.node] = claim.learners;
  std::vector<const LearnerView*> kept;
  for (const LearnerView* learner : job.held) {
    LearnerCount& left = room[model.NodeNamed(learner->node)];
    if (left == 0) continue;
    --left;
    kept.push_back(learner);
    decision.keep.push_back(learner->name);
  }
  for (const LearnerView& learner : job.view->learners) {
    if (learner.state == LearnerState::kLeaving || std::ranges::contains(kept, &learner)) continue;
    decision.drop.push_back(learner.name);
  }
  for (const auto& [node, learners] : room) {
    for (LearnerCount count = 0; count < learners; ++count) {
      decision.create.push_back(NewLearnerOn(model.nodes[node]));
    }
  }
}

}  // namespace pliant::planner
