#include "simulator/model/placement.h"

#include <algorithm>
#include <cstddef>
#include <numeric>

namespace pliant::simulator {

int Learners(const Placement& placement) {
  return std::accumulate(placement.begin(), placement.end(), 0);
}

Placement LeastRotation(const Placement& placement) {
  const std::size_t nodes = placement.size();
  std::size_t best = 0;  // where the least rotation begins
  for (std::size_t begin = 1; begin < nodes; ++begin) {
    for (std::size_t at = 0; at < nodes; ++at) {
      const int here = placement[(begin + at) % nodes];
      const int there = placement[(best + at) % nodes];
      if (here < there) best = begin;
      if (here != there) break;
    }
  }
  Placement least = placement;
  std::ranges::rotate(least, least.begin() + static_cast<std::ptrdiff_t>(best));
  return least;
}

Placement Packed(int learners, int gpus_per_node) {
  Placement placement;
  for (; learners > 0; learners -= placement.back()) {
    placement.push_back(std::min(learners, gpus_per_node));
  }
  return placement;
}

}  // namespace pliant::simulator
