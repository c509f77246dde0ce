#pragma once

#include <filesystem>
#include <memory>
#include <vector>

#include "base/result.h"
#include "trainer/membership/types.h"
#include "trainer/protocol/program.h"

namespace pliant {

// Records which samples a training used, to verify that none is left out or used twice. If several
// memberships record a tick as committed, the last one counts: all of its members together have
// recorded each sample once.
class SampleLedger {
 public:
  virtual ~SampleLedger() = default;
  // This learner's samples of a training tick. Recorded before anybody can commit the tick.
  virtual void Computed(MembershipId membership, Tick tick,
                        const std::vector<ShardTask>& tasks) = 0;
  virtual void Committed(MembershipId membership, Tick tick) = 0;
};

// A file of JSON lines. Each is written at once, so that a killed process leaves none out.
//   {"kind": "computed", "tick", "membership", "epoch", "shards": [{"shard", "samples": [index]}]}
//   {"kind": "committed", "tick", "membership"}
// kUnavailable: it cannot be written.
Result<std::unique_ptr<SampleLedger>> NewSampleLedgerFile(const std::filesystem::path& path);

}  // namespace pliant
