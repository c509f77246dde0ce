#include "simulator/report/gpu_time.h"

#include <algorithm>

namespace pliant::simulator {

std::vector<Holding> HoldingsOf(const RunRecord& run, const JobRecord& job) {
  const std::int64_t last = job.completed.value_or(run.end);
  std::vector<Holding> holdings;
  for (std::size_t at = 0; at < job.sizes.size(); ++at) {
    const std::int64_t next = at + 1 < job.sizes.size() ? job.sizes[at + 1].at : last;
    const Holding holding{
        .begin = job.sizes[at].at, .end = std::min(next, last), .gpus = job.sizes[at].gpus};
    if (holding.gpus > 0 && holding.end > holding.begin) holdings.push_back(holding);
  }
  return holdings;
}

std::map<int, double> GpuSecondsBySize(const RunRecord& run) {
  std::map<int, double> seconds;
  for (const JobRecord& job : run.jobs) {
    for (const Holding& holding : HoldingsOf(run, job)) {
      seconds[holding.gpus] +=
          holding.gpus * static_cast<double>(holding.end - holding.begin) / 1000;
    }
  }
  return seconds;
}

std::int64_t SpanOf(const RunRecord& run) {
  if (run.jobs.empty()) return 0;
  return run.end - std::ranges::min(run.jobs, {}, &JobRecord::submitted).submitted;
}

}  // namespace pliant::simulator
