#pragma once

#include <cstddef>

namespace pliant {

// Buckets, pieces and sums begin on these boundaries.
inline constexpr std::size_t kFloatsPerCacheLine = 16;

// How many cache lines hold so many floats.
constexpr std::size_t CacheLines(std::size_t floats) {
  return (floats + kFloatsPerCacheLine - 1) / kFloatsPerCacheLine;
}

}  // namespace pliant
