#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <vector>

#include "simulator/model/run_record.h"

// GPUs that jobs held over time.
namespace pliant::simulator {

// A stretch of time in which a job held the same GPUs; never empty. Milliseconds.
struct Holding {
  std::int64_t begin = 0;
  std::int64_t end = 0;
  int gpus = 0;
  bool operator==(const Holding&) const = default;
};

// The holdings of a job of the run, by rising time. A job holds nothing after its completion.
std::vector<Holding> HoldingsOf(const RunRecord& run, const JobRecord& job);

// GPU seconds of all jobs by the number of GPUs that the job held at the time.
std::map<int, double> GpuSecondsBySize(const RunRecord& run);

// The span of a run, from the first submission to the end, in steps of equal length. The last one
// may be shorter.
struct TimeSteps {
  std::int64_t begin = 0;
  std::int64_t end = 0;
  std::int64_t length = 1;  // milliseconds
  std::size_t count = 0;    // 0 if the span is empty
  bool operator==(const TimeSteps&) const = default;
};

TimeSteps StepsOf(const RunRecord& run, std::size_t max_steps);

// Mean GPUs in each step, so that GPUs · time is kept: a job that holds 4 GPUs for half of a step
// has 2 in it. Adds to `gpus`, which has a number for each step.
void AddMeanGpus(const std::vector<Holding>& holdings, const TimeSteps& steps,
                 std::vector<double>& gpus);

}  // namespace pliant::simulator
