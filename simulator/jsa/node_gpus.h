#pragma once

#include <cstddef>
#include <vector>

#include "simulator/model/placement.h"

namespace pliant::simulator {

// GPUs that jobs take from equal nodes and give back.
class NodeGpus {
 public:
  struct Share {
    std::size_t node = 0;
    int gpus = 0;
  };
  using Shares = std::vector<Share>;  // each node once

  NodeGpus(int nodes, int gpus_per_node) : free_(static_cast<std::size_t>(nodes), gpus_per_node) {}

  // Takes them from the node with the fewest free GPUs that are enough. If no node has enough,
  // takes all of the node with the most, then the rest by the same rule. Of equal nodes the first.
  // At least as many must be free.
  Shares Take(int gpus);
  void GiveBack(const Shares& shares);

 private:
  std::size_t NodeFor(int gpus) const;

  std::vector<int> free_;  // by node
};

Placement PlacementOf(const NodeGpus::Shares& shares);

}  // namespace pliant::simulator
