#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>

namespace pliant {

// The number of logical shards of a job that does not set it: the largest power of two that divides
// the global batch, but at most 2 · max_ranks, rounded up to a power of two. The operator and a
// learner outside a job use the same rule. Two shards a rank, because a shard of few samples takes
// a GPU as long as a larger one (docs/gpu.md). `global_batch_size` is not 0.
constexpr int DefaultLogicalShards(std::uint64_t global_batch_size, std::uint64_t max_ranks) {
  const std::uint64_t divides = std::uint64_t{1} << std::countr_zero(global_batch_size);
  return static_cast<int>(std::min(divides, std::bit_ceil(2 * max_ranks)));
}

}  // namespace pliant
