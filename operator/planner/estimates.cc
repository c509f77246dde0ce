#include "operator/planner/estimates.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>

namespace pliant::planner {
namespace {

// GPUs that a running job keeps to its end. Those beyond can be had before.
struct Freed {
  WallTime at;
  std::int64_t gpus = 0;
};

std::vector<Freed> FreedByEnds(const Model& model, const Sharing& sharing,
                               std::span<const std::optional<WallTime>> ends) {
  std::vector<Freed> freed;
  for (JobIndex job = 0; job < std::ssize(model.jobs); ++job) {
    if (!HasPlace(sharing.shares[job].standing)) continue;
    if (ends[job]) {
      freed.push_back({*ends[job], model.GpusOf(job, model.jobs[job].minimum)});
    }
  }
  std::ranges::sort(freed, {}, &Freed::at);
  return freed;
}

}  // namespace

std::vector<std::optional<WallTime>> EstimateStarts(const Model& model, const Sharing& sharing,
                                                    std::span<const std::optional<WallTime>> ends,
                                                    std::span<const JobIndex> waiting) {
  const std::vector<Freed> freed = FreedByEnds(model, sharing, ends);
  if (freed.empty()) return {};
  std::vector<std::optional<WallTime>> starts(model.jobs.size());
  std::size_t ended = 0;
  std::int64_t gpus = 0;  // freed so far, without those of jobs that started with them
  for (const JobIndex job : waiting) {
    gpus -= std::max<std::int64_t>(
        model.GpusOf(job, model.jobs[job].minimum) - sharing.shares[job].attainable_gpus, 0);
    for (; gpus < 0 && ended < freed.size(); ++ended) gpus += freed[ended].gpus;
    if (gpus < 0) return starts;
    starts[job] = ended == 0 ? model.snapshot->now : freed[ended - 1].at;
  }
  return starts;
}

}  // namespace pliant::planner
