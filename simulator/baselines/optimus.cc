#include "simulator/baselines/optimus.h"

#include <algorithm>
#include <numeric>
#include <queue>
#include <utility>

#include "simulator/model/job_model.h"
#include "simulator/rounds/free_gpus.h"

namespace pliant::simulator {
namespace {

// The rest of the training, in iterations with the job's batch.
double RemainingIterations(const RoundJob& job) {
  const int last = job.profile->epochs() - 1;
  if (job.training.epoch >= last) return 1;
  return job.profile->Iterations(last, job.spec->batch) -
         job.profile->Iterations(job.training.epoch, job.spec->batch);
}

struct Claim {
  double saving = 0;
  std::size_t at = 0;  // in the view
  // The largest saving comes first, then the job that was submitted first.
  bool operator<(const Claim& other) const {
    if (saving != other.saving) return saving < other.saving;
    return at > other.at;
  }
};

}  // namespace

std::vector<Allocation> Optimus::Allocate(const RoundView& view) {
  const std::vector<int> sizes = Sizes(view);
  FreeGpus free(view.node_gpus);
  std::vector<Allocation> allocations(view.jobs.size());
  for (std::size_t at = 0; at < view.jobs.size(); ++at) {
    if (GpusOf(view.jobs[at].held) != sizes[at]) continue;
    allocations[at] = view.jobs[at].held;
    free.Remove(allocations[at]);
  }
  std::vector<std::size_t> order(view.jobs.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::stable_sort(order, {}, [&](std::size_t at) { return sizes[at]; });
  for (const std::size_t at : order) {
    if (allocations[at].empty()) allocations[at] = free.TakeMostFree(sizes[at]);
  }
  return allocations;
}

std::vector<int> Optimus::Sizes(const RoundView& view) {
  int left = std::accumulate(view.node_gpus.begin(), view.node_gpus.end(), 0);
  const int gpus_per_node = std::ranges::max(view.node_gpus);
  std::vector<int> sizes(view.jobs.size(), 0);
  std::priority_queue<Claim> claims;
  for (std::size_t at = 0; at < view.jobs.size() && left > 0; ++at, --left) {
    sizes[at] = 1;
    claims.push({.saving = Saving(view.jobs[at], 1, gpus_per_node), .at = at});
  }
  for (; left > 0 && !claims.empty() && claims.top().saving > 0; --left) {
    const std::size_t at = claims.top().at;
    claims.pop();
    ++sizes[at];
    claims.push({.saving = Saving(view.jobs[at], sizes[at], gpus_per_node), .at = at});
  }
  return sizes;
}

double Optimus::Saving(const RoundJob& job, int gpus, int gpus_per_node) {
  if (gpus >= job.profile->MaxLearners(job.spec->batch)) return 0;
  return (StepSecondsOf(job, gpus, gpus_per_node) - StepSecondsOf(job, gpus + 1, gpus_per_node)) *
         RemainingIterations(job);
}

double Optimus::StepSecondsOf(const RoundJob& job, int gpus, int gpus_per_node) {
  std::vector<double>& known = step_seconds_[job.index];
  while (known.size() < static_cast<std::size_t>(gpus)) {
    const int size = static_cast<int>(known.size()) + 1;
    const BatchSplit split =
        SplitBatch(*job.profile, job.spec->batch, size, Alone::kAlwaysAccumulates);
    known.push_back(StepSeconds(*job.profile, Packed(size, gpus_per_node), split));
  }
  return known[static_cast<std::size_t>(gpus) - 1];
}

}  // namespace pliant::simulator
