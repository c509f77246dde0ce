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

TimeSteps StepsOf(const RunRecord& run, std::size_t max_steps) {
  if (run.jobs.empty() || max_steps == 0) return {};
  const std::int64_t begin = std::ranges::min(run.jobs, {}, &JobRecord::submitted).submitted;
  const std::int64_t span = run.end - begin;
  if (span <= 0) return {.begin = begin, .end = begin};
  const auto max = static_cast<std::int64_t>(max_steps);
  const std::int64_t length = (span + max - 1) / max;
  return {.begin = begin,
          .end = run.end,
          .length = length,
          .count = static_cast<std::size_t>((span + length - 1) / length)};
}

void AddMeanGpus(const std::vector<Holding>& holdings, const TimeSteps& steps,
                 std::vector<double>& gpus) {
  for (const Holding& holding : holdings) {
    std::int64_t from = std::max(holding.begin, steps.begin);
    const std::int64_t to = std::min(holding.end, steps.end);
    while (from < to) {
      const std::int64_t step = (from - steps.begin) / steps.length;
      const std::int64_t step_begin = steps.begin + step * steps.length;
      const std::int64_t step_end = std::min(steps.end, step_begin + steps.length);
      const std::int64_t until = std::min(to, step_end);
      gpus[static_cast<std::size_t>(step)] += holding.gpus * static_cast<double>(until - from) /
                                              static_cast<double>(step_end - step_begin);
      from = until;
    }
  }
}

}  // namespace pliant::simulator
