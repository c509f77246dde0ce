#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace pliant {

// From an epoch on, the global batch is the one of the job's beginning, doubled this many times:
// more logical shards of the same size. Holds until the next segment begins.
struct BatchSegment {
  std::uint64_t epoch = 0;
  int doublings = 0;
  bool operator==(const BatchSegment&) const = default;
};

// By their epochs, ascending; the first one is at least 1. Before the first segment the batch is
// not doubled. The list is part of the training's state; whoever decides only appends to it.
using BatchSegments = std::vector<BatchSegment>;

// So many, and the batch stays as it is. Every opening frame and every checkpoint has the list.
inline constexpr std::size_t kMaxBatchSegments = 1024;

}  // namespace pliant
