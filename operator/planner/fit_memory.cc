#include "operator/planner/fit_memory.h"

#include <algorithm>
#include <ranges>
#include <utility>

namespace pliant::planner {

void FitMemory::BeginPlan() {
  for (auto& [name, pool] : pools_) {
    std::erase_if(pool.verdicts,
                  [this](const auto& item) { return item.second.entry->plan != plan_; });
    std::erase_if(pool.entries, [this](const auto& item) { return item.second.plan != plan_; });
  }
  std::erase_if(pools_, [](const auto& item) { return item.second.entries.empty(); });
  ++plan_;
}

std::vector<Obstacle> FitMemory::Compare(const std::string& pool, const PodNeeds& needs,
                                         std::span<const NodeView* const> nodes) {
  return Compare(EntryOf(pools_[pool], needs), needs, nodes);
}

bool FitMemory::SuitSome(const std::string& pool, const SharedNeeds& asks,
                         std::span<const NodeView* const> nodes) {
  Pool& known = pools_[pool];
  LookAtNodes(known, nodes);
  const PodNeeds& needs = asks.OrNone();
  Verdict& verdict = known.verdicts[asks.needs];
  if (verdict.entry == nullptr) verdict.entry = &EntryOf(known, needs);
  verdict.entry->plan = plan_;
  if (std::exchange(verdict.look, known.look) != known.look) {
    const std::vector<Obstacle> obstacles = Compare(*verdict.entry, needs, nodes);
    verdict.suit_some =
        std::ranges::any_of(std::views::zip(nodes, obstacles), [](const auto& each) {
          return std::get<0>(each) != nullptr && std::get<1>(each) == Obstacle::kNone;
        });
  }
  return verdict.suit_some;
}

FitMemory::Entry& FitMemory::EntryOf(Pool& pool, const PodNeeds& needs) {
  Entry& entry = pool.entries[needs];
  entry.plan = plan_;
  return entry;
}

void FitMemory::LookAtNodes(Pool& pool, std::span<const NodeView* const> nodes) const {
  if (std::exchange(pool.plan, plan_) == plan_) return;
  std::vector<std::uint64_t> versions;
  versions.reserve(nodes.size());
  bool all_known = true;
  for (const NodeView* node : nodes) {
    versions.push_back(node == nullptr ? 0 : node->version.number);
    all_known = all_known && (node == nullptr || node->version.number > 0);
  }
  if (!all_known || versions != pool.versions) ++pool.look;
  pool.versions = std::move(versions);
}

std::vector<Obstacle> FitMemory::Compare(Entry& entry, const PodNeeds& needs,
                                         std::span<const NodeView* const> nodes) {
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
