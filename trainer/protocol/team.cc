#include "trainer/protocol/team.h"

#include <algorithm>
#include <utility>

namespace pliant {
namespace {

ShardMap MapAmong(const std::vector<bool>& in_sync, const WorkSplit& split, Tick tick) {
  const auto computing = static_cast<int>(std::ranges::count(in_sync, true));
  return AssignShardsAmong(split.MapOf(tick, computing).logical_shards, in_sync);
}

std::vector<int> LearnersOfRanks(const Membership& membership) {
  std::vector<int> learners;
  for (const Member& member : membership.members) {
    const auto first = std::ranges::find_if(
        membership.members, [&](const Member& other) { return SameLearner(other.id, member.id); });
    learners.push_back(static_cast<int>(first - membership.members.begin()));
  }
  return learners;
}

}  // namespace

int Team::members_in_sync() const { return static_cast<int>(std::ranges::count(in_sync, true)); }

void Team::OnCameInSync(const std::vector<int>& ranks, const WorkSplit& split, Tick next) {
  for (const int rank : ranks) in_sync[static_cast<std::size_t>(rank)] = true;
  map = MapAmong(in_sync, split, next);
  steps = 0;
}

void Team::BeginTick(const WorkSplit& split, Tick tick) {
  if (map.logical_shards != split.MapOf(tick, members_in_sync()).logical_shards)
    map = MapAmong(in_sync, split, tick);
}

Team MakeTeam(const Membership& membership, std::vector<bool> in_sync,
              const std::vector<std::vector<NodeIndex>>& finished, const WorkSplit& split,
              Tick first) {
  Team team{.in_sync = std::move(in_sync),
            .learner_of_rank = LearnersOfRanks(membership),
            .learners = membership.learners(),
            .map = {},
            .redo = {}};
  team.map = MapAmong(team.in_sync, split, first);
  team.redo = ReassignMissingShards(team.map.logical_shards, finished, team.in_sync);
  return team;
}

}  // namespace pliant
