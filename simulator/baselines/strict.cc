#include "simulator/baselines/strict.h"

#include <cstddef>

#include "simulator/rounds/free_gpus.h"

namespace pliant::simulator {

std::vector<Allocation> StrictGang::Allocate(const RoundView& view) {
  FreeGpus free(view.node_gpus);
  for (const RoundJob& job : view.jobs) free.Remove(job.held);
  std::vector<Allocation> allocations(view.jobs.size());
  bool blocked = false;
  for (std::size_t at = 0; at < view.jobs.size(); ++at) {
    const RoundJob& job = view.jobs[at];
    allocations[at] = job.held;
    if (!job.held.empty() || blocked) continue;
    blocked = job.spec->gpus > free.total();
    if (!blocked) allocations[at] = free.TakeMostFree(job.spec->gpus);
  }
  return allocations;
}

}  // namespace pliant::simulator
