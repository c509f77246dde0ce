#pragma once

#include <string>

#include "trainer/data/batch_segments.h"
#include "trainer/data/noise_window.h"
#include "trainer/data/shard.h"
#include "trainer/membership/types.h"

namespace pliant {

// The position of a training between two ticks. A learner has two: that of the state which its
// program holds, and that of the membership whose ticks it takes part in. They differ while it
// catches up.
struct Position {
  bool has_state = false;
  Tick applied_ticks = 0;
  // In Statistical mode, the membership that committed the last applied tick: a tick repeated by
  // another membership has another result. In bitwise mode 0.0.
  MembershipId lineage;
  // The ticks of the running evaluation; they are not part of the state.
  ShardSums evaluation;
  // The metrics line of the previous tick; "" if it has none.
  std::string last_line;
  // It covers the committed steps. While a learner catches up, only that of its own state is valid.
  NoiseWindow noise;
  BatchSegments batches;  // decided by these ticks
  bool operator==(const Position&) const = default;
};

}  // namespace pliant
