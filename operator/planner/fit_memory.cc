#include "operator/planner/fit_memory.h"

namespace pliant::planner {

void FitMemory::BeginPlan() {
  for (auto& [pool, entries] : pools_) {
    std::erase_if(entries, [this](const auto& item) { return item.second.plan != plan_; });
  }
  std::erase_if(pools_, [](const auto& item) { return item.second.empty(); });
  ++plan_;
}

std::vector<Obstacle> FitMemory::Compare(const std::string& pool, const PodNeeds& needs,
                                         std::span<const NodeView* const> nodes) {
  Entry& entry = pools_[pool][needs];
  entry.plan = plan_;
  entry.nodes.resize(nodes.size());
  std::vector<Obstacle> obstacles(nodes.size(), Obstacle::kNone);
  for (std::size_t index = 0; index < nodes.size(); ++index) {
    const NodeView* node = nodes[index];
    if (node == nullptr) continue;
    Seen& seen = entry.nodes[index];
    if (seen.version == 0 || seen.version != node->version.number) {
      ++comparisons_;
      seen = {.version = node->version.number, .obstacle = ObstacleInLooks(*node, needs)};
    }
    obstacles[index] = seen.obstacle;
  }
  return obstacles;
}

}  // namespace pliant::planner
