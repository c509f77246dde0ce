#pragma once

#include <cstdint>

#include "trainer/data/batch_segments.h"
#include "trainer/data/noise_window.h"
#include "trainer/data/schedule.h"

namespace pliant {

// How often the batch may be doubled: up to `max_batch_size`, but neither beyond the training set
// nor beyond the number of shards that a job may have. kInvalid, with the field and the remedy: not
// even once. The batch of a single shard never grows, because its noise cannot be measured.
Result<int> MaxDoublings(const DataSpec& spec, std::uint64_t max_batch_size);

// The doublings of the next epoch, by the noise scale of the committed steps. It is one more if the
// doubled batch is at most half of the noise scale, and one less if the batch is more than the
// scale. As long as the scale is not known, nothing changes. Every input is committed state, so
// every history of learners has the same batches.
int NextDoublings(const DataSpec& spec, int now, const NoiseWindow& noise);

// The segments with a decision for an epoch after the last one. At most one doubling or halving is
// taken of it, so that no peer's message can ask for more, and none once there are
// kMaxBatchSegments.
void Append(BatchSegments& segments, const DataSpec& spec, std::uint64_t epoch, int doublings);

}  // namespace pliant
