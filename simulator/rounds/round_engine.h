#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/result.h"
#include "simulator/model/profile.h"
#include "simulator/model/run_record.h"
#include "simulator/model/workload.h"
#include "simulator/rounds/round_policy.h"

namespace pliant::simulator {

struct RoundOptions {
  int nodes = 16;
  int gpus_per_node = 4;
  std::int64_t round_seconds = 60;
  // During this time a job with other GPUs than before holds them and does not train.
  std::int64_t restart_seconds = 30;
  std::int64_t max_seconds = 100'000'000;  // 3 years; a longer run is an error
};

struct JobOutcome {
  std::int64_t completed_seconds = 0;
  std::int64_t started_seconds = 0;  // first step
  int starts = 0;                    // the first, and every change of its GPUs except their loss
  int resizes = 0;                   // of these, the ones in which it had GPUs before
  int moves = 0;                     // of these, the ones in which it left all of its nodes
  std::vector<SizeAt> sizes;         // as of a JobRecord; the last one is that of its completion
  // That it held until its completion.
  double gpu_seconds = 0;
  // The same, each weighted by goodput / (GPUs · goodput with one GPU); 0 while it restarts.
  double useful_gpu_seconds = 0;
};

// Runs a workload in rounds, each job with its fixed batch. In a round all jobs train with the GPUs
// of the last plan; then the policy plans for the jobs that are submitted and not done. The first
// plan is at the end of the first round. Returns an outcome for each job.
//
// kInvalid if a job asks for more GPUs than there are, or if the jobs are not done at
// `max_seconds`.
Result<std::vector<JobOutcome>> RunRounds(const Profiles& profiles, std::span<const JobSpec> jobs,
                                          const RoundOptions& options, RoundPolicy& policy);

}  // namespace pliant::simulator
