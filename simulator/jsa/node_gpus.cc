#include "simulator/jsa/node_gpus.h"

#include <algorithm>

#include "base/check.h"

namespace pliant::simulator {

std::size_t NodeGpus::NodeFor(int gpus) const {
  std::size_t chosen = 0;
  for (std::size_t node = 1; node < free_.size(); ++node) {
    const bool is_enough = free_[node] >= gpus;
    const bool was_enough = free_[chosen] >= gpus;
    const bool is_better =
        was_enough ? is_enough && free_[node] < free_[chosen] : free_[node] > free_[chosen];
    if (is_better) chosen = node;
  }
  return chosen;
}

NodeGpus::Shares NodeGpus::Take(int gpus) {
  Shares shares;
  while (gpus > 0) {
    const std::size_t node = NodeFor(gpus);
    const int taken = std::min(free_[node], gpus);
    CHECK(taken > 0, "callers take what is free");
    shares.push_back({.node = node, .gpus = taken});
    free_[node] -= taken;
    gpus -= taken;
  }
  return shares;
}

void NodeGpus::GiveBack(const Shares& shares) {
  for (const Share& share : shares) free_[share.node] += share.gpus;
}

Placement PlacementOf(const NodeGpus::Shares& shares) {
  Placement placement;
  for (const NodeGpus::Share& share : shares) placement.push_back(share.gpus);
  return placement;
}

}  // namespace pliant::simulator
