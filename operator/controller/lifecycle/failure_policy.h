#pragma once

#include <optional>
#include <string>
#include <vector>

#include "operator/api/elastic_training_job.h"
#include "operator/api/pod.h"

namespace pliant::controller {

struct FatalFailure {
  std::string reason;  // of condition Failed
  std::string message;
  bool operator==(const FatalFailure&) const = default;
};

struct FailureVerdict {
  api::FailureCount failures;
  std::int64_t lowest_step = 0;       // to be remembered
  int newly_failed = 0;               // learners that are counted now for the first time
  std::string newest;                 // what befell the newest of them, a sentence
  std::optional<FatalFailure> fatal;  // the job has failed for good
};

// Counts the failed pods among `learners`, each once. A newly committed step since the last failure
// resets the count. So do steps that are done again after a restore: `lowest_step` (nothing: not
// known) lies below the last failure's then. But whoever fails again where the last failure was has
// got nowhere, from however far before it came: otherwise a job that always fails at one step would
// be restored and fail for ever.
FailureVerdict JudgeFailures(const api::FailurePolicy& policy, const api::FailureCount& before,
                             const std::optional<std::int64_t>& lowest_step,
                             std::int64_t committed_step, const std::vector<api::Pod>& learners);

// The ended pods of a job with this status that are of no use any more: all that were told to go or
// were disrupted, and all but the newest three of the failed ones, whose logs somebody may want.
// Those that their node refused or lost have none, and get the places that are left. While the job
// has not finished, a failed one stays until it is counted.
std::vector<const api::Pod*> PodsToCollect(const std::vector<api::Pod>& learners,
                                           const api::JobStatus& status);

}  // namespace pliant::controller
