#include "simulator/model/placement.h"

#include <algorithm>
#include <cstddef>
#include <numeric>

namespace pliant::simulator {

int Learners(const Placement& placement) {
  return std::accumulate(placement.begin(), placement.end(), 0);
}

Placement LeastRotation(const Placement& placement) {
  Placement least = placement;
  Placement turned = placement;
  for (std::size_t turn = 1; turn < placement.size(); ++turn) {
    std::ranges::rotate(turned, turned.begin() + 1);
    if (turned < least) least = turned;
  }
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
