#include "operator/controller/lifecycle/limits.h"

#include <string>

#include "base/format.h"
#include "operator/controller/lifecycle/conditions.h"

namespace pliant::controller {
namespace {

// Why less holds than the job asks for; "": all holds.
std::string LimitsOf(const JobView& view, const std::optional<JobPlan>& plan) {
  std::string limits = view.job->spec.limited;
  const int asked = view.job->spec.elastic.min_learners;
  if (!plan || plan->decision.minimum.value_or(asked) >= asked) return limits;
  if (!limits.empty()) limits += "; ";
  return limits +
         Format(
             "elastic.minLearners counts as {}, not as {}: while a job runs its minimum rises only "
             "within its share, which is {}; suspend and resume it to let it wait for {}",
             *plan->decision.minimum, asked, Counted(plan->decision.entitlement, "learner"), asked);
}

}  // namespace

void ReportLimits(const JobView& view, const std::optional<JobPlan>& plan, WallTime now,
                  api::JobStatus& status) {
  const std::string limited = LimitsOf(view, plan);
  if (limited.empty() && api::FindCondition(status, kConditionLimited) == nullptr) return;
  SetCondition(status, kConditionLimited,
               limited.empty() ? Verdict{api::ConditionStatus::kFalse, "WithinLimits",
                                         "no limit reduces what the job asks for"}
                               : Verdict{api::ConditionStatus::kTrue, "BeyondLimits", limited},
               view.job->meta.generation, now);
}

}  // namespace pliant::controller
