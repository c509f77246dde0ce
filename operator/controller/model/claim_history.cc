#include "operator/controller/model/claim_history.h"

#include <algorithm>
#include <chrono>
#include <utility>

namespace pliant::controller {
namespace {

constexpr std::chrono::seconds kYields{60};

bool IsLower(const Claim& claim, const Claim& before) {
  return (claim.suspended && !before.suspended) || claim.priority < before.priority ||
         claim.max_learners < before.max_learners;
}

}  // namespace

void ObserveClaim(const api::ElasticTrainingJob& job, const std::optional<int>& asked,
                  api::WallTime now, ClaimHistory& claims) {
  const int most = job.spec.elastic.max_learners;
  const Claim claim{.suspended = job.spec.suspend,
                    .priority = job.spec.priority,
                    .max_learners = std::min(most, asked.value_or(most))};
  const std::optional<Claim> before = std::exchange(claims.last, claim);
  const bool had_learners = job.status.share.desired_learners > 0;
  if (before && had_learners && IsLower(claim, *before)) claims.yields_until = now + kYields;
  if (claims.yields_until && *claims.yields_until <= now) claims.yields_until.reset();
}

}  // namespace pliant::controller
