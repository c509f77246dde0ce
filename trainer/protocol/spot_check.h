#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "trainer/data/shard.h"
#include "trainer/protocol/team.h"
#include "trainer/protocol/work_split.h"

namespace pliant {

// A shard that two ranks compute in the same tick. If their results differ, the data or the random
// numbers of the program depend on the process, and so does every result of the job.
struct SpotCheck {
  // One step in so many: the second rank computes one shard more than its own, so it takes at most
  // 1/128 longer, even if it has only one.
  static constexpr std::uint64_t kEverySteps = 128;

  int shard = 0;
  int owner = 0;    // rank
  int checker = 0;  // rank
  bool operator==(const SpotCheck&) const = default;
};

// The spot check of a training tick: a function of the job's seed, the step and the team, so all
// members agree. It comes at one step of each kEverySteps, and after the first step that the
// members in sync took together. None: also in Statistical mode, and in a tick that repeats parts
// of an aborted one.
std::optional<SpotCheck> SpotCheckOf(std::uint64_t step, const Team& team, const WorkSplit& split);

// A shard's result as one number. `gradient`: ChecksumOf it. `buffers`: the model's buffers after
// it; empty unless it is shard 0, whose buffers are committed.
std::uint64_t DigestOfShard(std::uint64_t gradient, std::span<const std::byte> buffers,
                            const ShardSums& sums);

}  // namespace pliant
