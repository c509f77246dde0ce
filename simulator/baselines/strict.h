#pragma once

#include <vector>

#include "simulator/rounds/round_policy.h"

namespace pliant::simulator {

// Strict gang scheduling, first in, first out: a job starts with all its requested GPUs and keeps
// them; the first that does not fit blocks all behind it.
class StrictGang : public RoundPolicy {
 public:
  std::vector<Allocation> Allocate(const RoundView& view) override;
};

}  // namespace pliant::simulator
