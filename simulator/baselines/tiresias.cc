#include "simulator/baselines/tiresias.h"

#include <algorithm>
#include <map>

#include "simulator/rounds/free_gpus.h"

namespace pliant::simulator {

std::vector<Allocation> Tiresias::Allocate(const RoundView& view) {
  UpdateQueues(view);
  std::map<std::size_t, std::size_t> position;  // in the view, by index of the job
  for (std::size_t at = 0; at < view.jobs.size(); ++at) position[view.jobs[at].index] = at;
  FreeGpus free(view.node_gpus);
  int left = free.total();
  std::vector<std::size_t> runs;  // positions, in the order of the queues
  for (const std::vector<std::size_t>* queue : {&first_, &second_}) {
    for (const std::size_t index : *queue) {
      const int gpus = view.jobs[position[index]].spec->gpus;
      if (gpus > left) continue;
      left -= gpus;
      runs.push_back(position[index]);
    }
  }
  std::vector<Allocation> allocations(view.jobs.size());
  for (const std::size_t at : runs) {
    allocations[at] = view.jobs[at].held;
    free.Remove(allocations[at]);
  }
  for (const std::size_t at : runs) {
    if (allocations[at].empty()) allocations[at] = free.TakeMostFree(view.jobs[at].spec->gpus);
  }
  return allocations;
}

void Tiresias::UpdateQueues(const RoundView& view) {
  std::set<std::size_t> present;
  for (const RoundJob& job : view.jobs) present.insert(job.index);
  const auto is_gone = [&](std::size_t index) { return !present.contains(index); };
  std::erase_if(first_, is_gone);
  std::erase_if(second_, is_gone);
  for (const RoundJob& job : view.jobs) {
    if (known_.insert(job.index).second) first_.push_back(job.index);
  }
  for (const RoundJob& job : view.jobs) {
    if (job.held_seconds * job.spec->gpus < threshold_gpu_seconds_) continue;
    if (std::erase(first_, job.index) > 0) second_.push_back(job.index);
  }
}

}  // namespace pliant::simulator
