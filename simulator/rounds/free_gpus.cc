#include "simulator/rounds/free_gpus.h"

#include <algorithm>
#include <cstddef>
#include <numeric>

#include "base/check.h"

namespace pliant::simulator {

int FreeGpus::total() const { return std::accumulate(of_node_.begin(), of_node_.end(), 0); }

void FreeGpus::Remove(const Allocation& allocation) {
  for (const NodeShare& share : allocation) {
    of_node_[static_cast<std::size_t>(share.node)] -= share.gpus;
  }
}

Allocation FreeGpus::TakeMostFree(int gpus) {
  CHECK(gpus <= total(), "the policy counts what is free");
  Allocation taken;
  while (gpus > 0) {
    const auto most = std::ranges::max_element(of_node_);
    const int part = std::min(*most, gpus);
    taken.push_back({.node = static_cast<int>(most - of_node_.begin()), .gpus = part});
    *most -= part;
    gpus -= part;
  }
  return taken;
}

}  // namespace pliant::simulator
