#pragma once

#include <cstdint>

#include "base/result.h"
#include "simulator/inputs/scenario.h"
#include "simulator/model/profile.h"
#include "simulator/model/run_record.h"
#include "simulator/run_policy.h"

namespace pliant::simulator {

struct BaselineOptions {
  std::int64_t round_seconds = 60;
  std::int64_t restart_seconds = 30;
};

// Baselines know equal nodes and jobs with a fixed batch, and nothing else. An error is a sentence
// with its remedy.
Status CheckForBaseline(const Scenario& scenario);

// Runs a scenario in rounds under a baseline (CheckForBaseline). `policy` and `workload` of the
// record are left to the caller. kInvalid if the jobs take years.
Result<RunRecord> RunBaseline(const Profiles& profiles, const Scenario& scenario, Baseline baseline,
                              const BaselineOptions& options);

}  // namespace pliant::simulator
