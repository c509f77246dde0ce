#pragma once

#include <optional>

#include "operator/api/elastic_training_job.h"

namespace pliant::controller {

// The job's claim to GPUs, as far as its owner may edit it, and its program ask for it, at any
// time.
struct Claim {
  bool suspended = false;
  int priority = 0;
  int max_learners = 0;
  bool operator==(const Claim&) const = default;
};

struct ClaimHistory {
  std::optional<Claim> last;
  // Others got GPUs because the claim fell: until then the job takes none back from them.
  // Otherwise a job whose claim rises and falls each second would resize all of its neighbors.
  std::optional<api::WallTime> yields_until;
  bool operator==(const ClaimHistory&) const = default;
};

// `asked`: the number of learners that its program asks for; nullopt: any.
void ObserveClaim(const api::ElasticTrainingJob& job, const std::optional<int>& asked,
                  api::WallTime now, ClaimHistory& claims);

}  // namespace pliant::controller
