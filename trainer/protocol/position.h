#pragma once

#include <string>

#include "trainer/data/shard.h"
#include "trainer/membership/types.h"

namespace pliant {

// Where a training stands between two ticks. A learner has two: that of the state which its program
// holds, and that of the membership whose ticks it takes part in. They differ while it catches up.
struct Position {
  bool has_state = false;
  Tick applied_ticks = 0;
  // In Statistical mode, the membership that committed the last of them: done again by others, a
  // tick has another result. In bitwise mode 0.0.
  MembershipId lineage;
  ShardSums evaluation;   // of the ticks of the running evaluation: they are not part of the state
  std::string last_line;  // of metrics, of the tick before; "" if it has none
  bool operator==(const Position&) const = default;
};

}  // namespace pliant
