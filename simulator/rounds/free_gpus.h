#pragma once

#include <utility>
#include <vector>

#include "simulator/rounds/round_policy.h"

namespace pliant::simulator {

// GPUs of each node that no allocation has.
class FreeGpus {
 public:
  explicit FreeGpus(std::vector<int> of_node) : of_node_(std::move(of_node)) {}

  int total() const;
  void Remove(const Allocation& allocation);
  // Takes from the node with the most free GPUs, the lowest of several, until there are enough.
  // `gpus` must not exceed the total.
  Allocation TakeMostFree(int gpus);

 private:
  std::vector<int> of_node_;
};

}  // namespace pliant::simulator
