#pragma once

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

// Milliseconds from the first submission to the end of the run; 0 without jobs.
std::int64_t SpanOf(const RunRecord& run);

}  // namespace pliant::simulator
