#pragma once

#include <filesystem>
#include <memory>
#include <vector>

#include "base/result.h"
#include "trainer/membership/types.h"
#include "trainer/protocol/program.h"

namespace pliant {

// Which samples a training used, for those who want to see that none is left out or taken twice. Of
// a tick that is told as committed by several memberships the last one counts; all of its members
// together have told of each sample once.
class SampleLedger {
 public:
  virtual ~SampleLedger() = default;
  // What this learner gives to a tick of training; told before anybody can commit it.
  virtual void Computed(MembershipId membership, Tick tick,
                        const std::vector<ShardTask>& tasks) = 0;
  virtual void Committed(MembershipId membership, Tick tick) = 0;
};

// A file of JSON lines (docs/contracts.md §5), written at once: a process that is killed leaves
// nothing out. kUnavailable, kDenied: it cannot be written.
Result<std::unique_ptr<SampleLedger>> NewSampleLedgerFile(const std::filesystem::path& path);

}  // namespace pliant
