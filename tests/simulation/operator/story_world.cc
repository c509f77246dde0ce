#include "tests/simulation/operator/story_world.h"

#include <algorithm>
#include <chrono>

#include "base/format.h"
#include "operator/controller/model/names.h"
#include "tests/kube/object_rules.h"
#include "tests/simulation/operator/objects.h"

namespace pliant::operator_sim {

using namespace std::chrono_literals;

StoryWorld::StoryWorld(std::uint64_t seed) : World(seed) { StartOnTwoNodes(); }

void StoryWorld::Submit(const std::string& job, const Json& spec_changes) {
  Json changes = {{"elastic", {{"maxLearners", 8}}}};
  changes.merge_patch(spec_changes);
  Submit(job, kLong, changes);
}

void StoryWorld::CrashALearner(const std::string& job) {
  for (const std::string& pod : PodsOf(job, controller::kRoleLearner)) {
    if (!cluster.Runs(pod)) continue;
    cluster.EndProgram(pod, 1, Json());
    return;
  }
  ADD_FAILURE() << "no learner of " << job << " runs";
}

void StoryWorld::RemovePods(const std::string& job, std::string_view role) {
  for (const std::string& pod : PodsOf(job, role)) server.Remove(pod);
}

void StoryWorld::KillOperator() {
  for (const std::size_t replica : {0, 1}) Kill(replica);
}

int StoryWorld::CountPods(const std::string& job, std::string_view role) const {
  return static_cast<int>(PodsOf(job, role).size());
}

bool StoryWorld::HasCoordinator(const std::string& job, int term) const {
  return std::ranges::any_of(PodsOf(job, controller::kRoleCoordinator), [&](const auto& pod) {
    return LabelOf(*server.Find(pod), controller::kLabelTerm) == std::to_string(term);
  });
}

bool StoryWorld::ReachSizes(const std::map<std::string, int>& sizes) {
  return Reach([&] {
    return std::ranges::all_of(sizes, [&](const auto& entry) {
      return Learners(entry.first) == entry.second && Phase(entry.first) == "Running";
    });
  });
}

bool StoryWorld::ReachEvent(const std::string& event) {
  return Reach([&] { return std::ranges::contains(events, event); });
}

}  // namespace pliant::operator_sim
