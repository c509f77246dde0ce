#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "trainer/collective/shard_dealing.h"
#include "trainer/collective/tree.h"
#include "trainer/membership/types.h"
#include "trainer/protocol/work_split.h"

namespace pliant {

// The division of work among the members of a membership: the same on all members.
struct Team {
  std::vector<bool> in_sync;         // by rank: holds the state; all others catch up
  std::vector<int> learner_of_rank;  // the first rank of the same learner: they share a machine
  int learners = 0;
  ShardMap map;
  // Replaces `map` in the membership's first tick, some of whose shards may be finished already.
  std::optional<ShardDealing> redo;

  const ShardMap& tick_map() const { return redo ? redo->map : map; }
  int members_in_sync() const;
  bool IsInSync(int rank) const { return in_sync[static_cast<std::size_t>(rank)]; }

  std::uint64_t steps = 0;  // that these members in sync have committed together

  // Call it after each committed tick; the first one ends `redo`.
  void OnCommitted(TickKind kind) {
    redo.reset();
    if (kind == TickKind::kTrain) ++steps;
  }
  // These ranks compute from the next tick on, which is `next`.
  void OnCameInSync(const std::vector<int>& ranks, const WorkSplit& split, Tick next);
  // The shards of the next tick may be others than those of the one before.
  void BeginTick(const WorkSplit& split, Tick tick);
};

// `finished`, by rank: nodes of the first tick's tree that the members brought along.
Team MakeTeam(const Membership& membership, std::vector<bool> in_sync,
              const std::vector<std::vector<NodeIndex>>& finished, const WorkSplit& split,
              Tick first);

}  // namespace pliant
