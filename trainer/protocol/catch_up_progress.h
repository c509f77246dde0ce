#pragma once

#include <vector>

#include "trainer/membership/types.h"

namespace pliant {

// The progress of the members that catch up, as they report it to a member in sync.
class CatchUpProgress {
 public:
  // `ranks` members begin after `applied` ticks. Members in sync may be ahead of the others by
  // `max_backlog` ticks.
  CatchUpProgress(std::size_t ranks, Tick applied, Tick max_backlog)
      : max_backlog_(max_backlog), reached_(ranks, applied), reported_in_sync_(ranks, false) {}

  // A trailer from a rank that catches up.
  void OnTrailer(int rank, Tick tick, bool in_sync);
  // Ranks that reported that they are in sync, but are not yet so for all members (`in_sync`).
  std::vector<int> NewlyInSync(const std::vector<bool>& in_sync) const;
  // Whether a rank is so far behind that those in sync must wait, after `applied` ticks.
  bool IsAnyFarBehind(const std::vector<bool>& in_sync, Tick applied) const;

 private:
  Tick max_backlog_;
  std::vector<Tick> reached_;           // by rank
  std::vector<bool> reported_in_sync_;  // by rank
};

}  // namespace pliant
