#pragma once

#include <string>
#include <utility>
#include <vector>

#include "trainer/membership/types.h"
#include "trainer/protocol/opening.h"

namespace pliant {

// Where a training stands between two ticks. A learner has two: that of the state which its program
// holds, and that of the membership whose ticks it takes part in. They differ while it catches up.
struct Position {
  bool has_state = false;
  Tick applied_ticks = 0;
  MembershipId lineage;   // as in Holding
  ShardSums evaluation;   // of the ticks of the running evaluation: they are not part of the state
  std::string last_line;  // of metrics, of the tick before; "" if it has none
};

inline Position PositionOf(const Holding& holding) {
  return {.has_state = holding.has_state,
          .applied_ticks = holding.applied_ticks,
          .lineage = holding.lineage,
          .evaluation = holding.evaluation,
          .last_line = holding.last_line};
}

// `current`, `finished`: as in Holding.
inline Holding HoldingOf(const Position& position, bool current, std::vector<NodeIndex> finished) {
  return {.has_state = position.has_state,
          .applied_ticks = position.applied_ticks,
          .lineage = position.lineage,
          .current = current,
          .evaluation = position.evaluation,
          .last_line = position.last_line,
          .finished = std::move(finished)};
}

}  // namespace pliant
