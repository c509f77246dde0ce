#pragma once

#include <vector>

#include "trainer/membership/types.h"

namespace pliant {

// How far those members are that catch up, as one that is in sync hears it from them.
class CatchUpProgress {
 public:
  // `ranks` members begin after `applied` ticks. Those in sync may be ahead of the others by
  // `max_backlog` ticks.
  CatchUpProgress(std::size_t ranks, Tick applied, Tick max_backlog)
      : max_backlog_(max_backlog), reached_(ranks, applied), said_in_sync_(ranks, false) {}

  // A trailer of a rank that catches up.
  void OnTrailer(int rank, Tick tick, bool in_sync);
  // Ranks that said that they are in sync, and are not yet by what all know (`in_sync`).
  std::vector<int> NewlyInSync(const std::vector<bool>& in_sync) const;
  // Whether one of them is so far behind that those in sync are to wait, after `applied` ticks.
  bool IsAnyFarBehind(const std::vector<bool>& in_sync, Tick applied) const;

 private:
  Tick max_backlog_;
  std::vector<Tick> reached_;       // by rank
  std::vector<bool> said_in_sync_;  // by rank
};

}  // namespace pliant
