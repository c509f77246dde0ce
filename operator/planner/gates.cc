#include <algorithm>
#include <string>
#include <string_view>
#include <tuple>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "operator/planner/feasibility.h"
#include "operator/planner/plan.h"

namespace pliant::planner {
namespace {

struct Candidate {
  const JobView* job = nullptr;
  const LearnerView* learner = nullptr;
  Resources* room = nullptr;
};

// The room that is free on nodes that take pods. A node is there once for each pool that it belongs
// to.
class FreeRoom {
 public:
  // Only of the nodes in `names`: most nodes have no gated learner.
  FreeRoom(const ClusterSnapshot& snapshot, const std::unordered_set<std::string_view>& names)
      : snapshot_(snapshot) {
    for (const NodeView& node : snapshot.nodes) {
      if (!names.contains(node.name)) continue;
      Room room{.pool = node.pool};
      if (MayStart(node)) room.free = node.allocatable - node.foreign;
      nodes_[node.name].push_back(room);
    }
  }

  // For pods of the pool; null: the node is not in it.
  Resources* Find(const std::string& pool, const std::string& node) {
    const auto at = nodes_.find(node);
    if (at == nodes_.end()) return nullptr;
    const auto room = std::ranges::find(at->second, pool, &Room::pool);
    return room == at->second.end() ? nullptr : &room->free;
  }

  // A pod of the pool holds its resources. In another pool it takes no GPUs of the node, if the
  // node offers GPUs of its own pool, or those are of another resource.
  void Take(const std::string& pool, const std::string& node, const Resources& needs) {
    const auto at = nodes_.find(node);
    if (at == nodes_.end()) return;
    const bool is_member = std::ranges::contains(at->second, pool, &Room::pool);
    for (Room& room : at->second) {
      Resources takes = needs;
      const bool is_other = room.pool != pool;
      if (is_other &&
          (is_member || ResourceOf(snapshot_, room.pool) != ResourceOf(snapshot_, pool)))
        takes.gpus = 0;
      room.free -= takes;
    }
  }

 private:
  struct Room {
    std::string_view pool;
    Resources free;
  };
  const ClusterSnapshot& snapshot_;
  std::unordered_map<std::string_view, std::vector<Room>> nodes_;
};

}  // namespace

std::vector<GateOpening> OpenGates(const ClusterSnapshot& snapshot,
                                   const std::vector<Decision>& decisions) {
  std::unordered_set<std::string_view> nodes;
  for (const JobView& job : snapshot.jobs) {
    for (const LearnerView& learner : job.learners) {
      if (learner.state == LearnerState::kGated) nodes.insert(learner.node);
    }
  }
  if (nodes.empty()) return {};
  FreeRoom free(snapshot, nodes);
  std::unordered_map<std::string_view, const Decision*> decision_of;  // by uid
  std::vector<Candidate> candidates;
  for (const Decision& decision : decisions) {
    if (!decision.keep.empty()) decision_of[decision.job.uid] = &decision;
  }
  for (const JobView& job : snapshot.jobs) {
    for (const LearnerView& learner : job.learners) {
      if (learner.state != LearnerState::kGated) {
        free.Take(job.pool, learner.node, job.needs.resources);
        continue;
      }
      Resources* const room = free.Find(job.pool, learner.node);
      const auto decision = decision_of.find(job.key.uid);
      if (room != nullptr && decision != decision_of.end() &&
          std::ranges::contains(decision->second->keep, learner.name)) {
        candidates.push_back({&job, &learner, room});
      }
    }
  }
  // The learner that has waited longest goes first.
  std::ranges::sort(candidates, [](const Candidate& left, const Candidate& right) {
    return std::tie(left.learner->created, left.job->key, left.learner->name) <
           std::tie(right.learner->created, right.job->key, right.learner->name);
  });
  std::vector<GateOpening> open;
  for (const auto& [job, learner, room] : candidates) {
    if (!Fits(job->needs.resources, *room)) continue;
    free.Take(job->pool, learner->node, job->needs.resources);
    open.push_back({.job = job->key, .learner = learner->name, .node = learner->node});
  }
  return open;
}

}  // namespace pliant::planner
