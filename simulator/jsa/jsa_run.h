#pragma once

#include <cstdint>
#include <span>

#include "simulator/jsa/poisson_jobs.h"
#include "simulator/jsa/sample_rates.h"
#include "simulator/model/profile.h"
#include "simulator/model/run_record.h"

namespace pliant::simulator {

// The batch of a job.
enum class BatchChoice {
  kElastic,  // the fastest one for the GPUs that the job has at that moment
  // Always the same one of BatchesOf:
  kMax,
  kRandom,
  kMin,
};

struct JsaOptions {
  int nodes = 10;
  SampleRules rules;
  BatchChoice batch = BatchChoice::kElastic;
  // ms. Decisions are made at multiples of this, after jobs arrived or ended; 0: at once.
  std::int64_t decide_every = 60'000;
  // ms. A job with other GPUs than before, or with its first ones, does not train for this time.
  std::int64_t restart = 30'000;
};

// The scheduler of arXiv:2006.13878. A decision takes jobs in the order of arrival until the next
// one does not fit with its smallest size: that one and later ones wait. MaxTotalValue gives the
// others sizes with the largest sum of speedups. A job that has begun never waits again. Jobs whose
// size changes are placed again, the largest first, on the fewest nodes that have room; others keep
// their nodes. The run ends with the last job.
//
// `jobs`: in the order of arrival. Every job must have a size that the nodes allow.
RunRecord RunJsa(const Profiles& profiles, std::span<const SamplesJob> jobs,
                 const JsaOptions& options);

}  // namespace pliant::simulator
