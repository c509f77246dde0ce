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
  std::int64_t lowest_step = 0;       // to be stored for the next call
  int newly_failed = 0;               // learners that are counted now for the first time
  std::string newest;                 // what happened to the newest of them
  std::optional<FatalFailure> fatal;  // the job has failed permanently
};

// Counts the failed pods among `learners`, each once. A newly committed step since the last failure
// resets the count. So does progress after a restore, when `lowest_step` (nullopt: not known) is
// below the step of the last failure. But a failure at that same step is no progress, however many
// steps were repeated before it: otherwise a job that always fails at one step would be restored
// and fail forever.
FailureVerdict JudgeFailures(const api::FailurePolicy& policy, const api::FailureCount& before,
                             const std::optional<std::int64_t>& lowest_step,
                             std::int64_t committed_step, const std::vector<api::Pod>& learners);

// The ended pods that a job with this status no longer needs: all that were drained or disrupted,
// and all failed ones except the newest three, whose logs somebody may want. Pods that their node
// refused or lost have no logs: they only fill up the three places. While the job has not finished,
// a failed pod stays until it is counted.
std::vector<const api::Pod*> PodsToCollect(const std::vector<api::Pod>& learners,
                                           const api::JobStatus& status);

}  // namespace pliant::controller
