#include "operator/controller/rounds/placeholder_changes.h"

#include <algorithm>
#include <chrono>
#include <map>
#include <set>
#include <string_view>
#include <tuple>
#include <utility>

#include "base/earliest.h"
#include "operator/controller/objects/placeholder_pod.h"
#include "operator/planner/feasibility.h"

namespace pliant::controller {
namespace {

using planner::operator+=;
using planner::operator-=;

constexpr std::chrono::seconds kRestOfEnded{60};

std::string LabelOf(const api::Pod& pod, std::string_view label) {
  const auto found = pod.meta.labels.find(std::string(label));
  return found == pod.meta.labels.end() ? "" : found->second;
}

// The room that a plan leaves on some nodes.
class RoomLeft {
 public:
  RoomLeft(const std::set<std::string_view>& nodes, const PlannedCluster& cluster) {
    if (nodes.empty()) return;
    for (const planner::NodeView& node : cluster.snapshot.nodes) {
      if (nodes.contains(node.name)) room_[node.name] = node.allocatable - node.foreign;
    }
    for (const planner::JobView& job : cluster.snapshot.jobs) {
      for (const planner::LearnerView& learner : job.learners) {
        Take(learner.node, job.needs.resources);
      }
      const planner::Decision* decision =
          planner::FindDecision(cluster.plan, job.key.name_space, job.key.name);
      if (decision == nullptr) continue;
      for (const planner::NewLearner& learner : decision->create) {
        Take(learner.node, job.needs.resources);
      }
    }
  }

  // Whether there is room for a pod; then it takes it.
  bool TakeIfFits(const std::string& node, const planner::Resources& needs) {
    const auto at = room_.find(node);
    if (at == room_.end()) return true;  // nothing is planned there
    if (!planner::Fits(needs, at->second)) return false;
    at->second -= needs;
    return true;
  }

 private:
  void Take(const std::string& node, const planner::Resources& needs) {
    const auto at = room_.find(node);
    if (at != room_.end()) at->second -= needs;
  }

  std::map<std::string_view, planner::Resources> room_;
};

}  // namespace

PlaceholderChanges ChangePlaceholders(std::span<const RequestedNodes> wanted,
                                      std::span<const std::shared_ptr<const api::Pod>> present,
                                      const PlannedCluster& cluster) {
  struct Job {
    const RequestedNodes* nodes = nullptr;
    std::string needs;
    std::vector<const api::Pod*> pods;
    std::set<std::string> names;  // also of pods that end
  };
  std::map<std::string, Job> jobs;
  for (const RequestedNodes& nodes : wanted) {
    jobs[nodes.job.uid] = {.nodes = &nodes, .needs = HashOfNeeds(nodes)};
  }
  std::set<std::string_view> used;
  for (const auto& pod : present) {
    if (!pod->node_name.empty()) used.insert(pod->node_name);
  }
  RoomLeft room(used, cluster);
  PlaceholderChanges changes;
  for (const auto& pod : present) {
    const auto job = jobs.find(LabelOf(*pod, kLabelNodesFor));
    if (job != jobs.end()) job->second.names.insert(pod->meta.name);
    if (pod->deleting()) continue;
    // A node may refuse one after the other: an ended one rests for a while before it is replaced.
    const api::WallTime rests_until = pod->meta.created + kRestOfEnded;
    if (job != jobs.end() && pod->ended() && cluster.snapshot.now < rests_until) {
      job->second.pods.push_back(pod.get());
      KeepEarliest(rests_until, changes.look_again);
      continue;
    }
    const bool serves =
        job != jobs.end() && !pod->ended() && LabelOf(*pod, kLabelNeeds) == job->second.needs &&
        room.TakeIfFits(pod->node_name, pod->requests.CountedAs(job->second.nodes->gpu_resource));
    if (serves) {
      job->second.pods.push_back(pod.get());
    } else {
      changes.remove.push_back({pod->meta.name, pod->meta.uid});
    }
  }
  for (auto& [uid, job] : jobs) {
    // Bound ones stay, because nodes have come for them.
    std::ranges::sort(job.pods, {}, [](const api::Pod* pod) {
      return std::tuple(pod->node_name.empty(), std::string_view(pod->meta.name));
    });
    const auto learners = static_cast<std::size_t>(job.nodes->learners);
    for (std::size_t index = learners; index < job.pods.size(); ++index) {
      changes.remove.push_back({job.pods[index]->meta.name, job.pods[index]->meta.uid});
    }
    int number = 0;
    for (std::size_t count = job.pods.size(); count < learners; ++count, ++number) {
      while (job.names.contains(PlaceholderName(uid, number))) ++number;
      changes.create.push_back({job.nodes, number});
    }
  }
  return changes;
}

}  // namespace pliant::controller
