#include "operator/controller/model/checked_template.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "operator/controller/model/job_view.h"

namespace pliant::controller {
namespace {

constexpr std::chrono::seconds kFirstCheckDelay{10};
constexpr std::chrono::seconds kLongestCheckDelay{300};

bool IsOfThisGeneration(const api::ElasticTrainingJob& job, const CheckedTemplate& known) {
  return known.check && known.check->generation == job.meta.generation;
}

}  // namespace

const AdmittedNeeds* AdmittedNeedsOf(const api::ElasticTrainingJob& job,
                                     const CheckedTemplate& known) {
  const auto& admitted = known.admitted_needs;
  const bool present = admitted && admitted->template_hash == job.spec.learner_template.hash;
  return present ? &*admitted : nullptr;
}

// Live learners were made from the admitted template: another one has to wait until they have left.
void ObserveTemplate(const api::ElasticTrainingJob& job, const std::vector<api::Pod>& learners,
                     CheckedTemplate& known) {
  if (!IsAdmitted(job.spec, job.status) || AdmittedNeedsOf(job, known) != nullptr) return;
  const auto newest = std::ranges::find_if(
      learners.rbegin(), learners.rend(),
      [](const api::Pod& pod) { return !pod.ended() && pod.asks.needs != nullptr; });
  if (newest == learners.rend()) return;
  known.admitted_needs = {job.spec.learner_template.hash, newest->asks.needs};
}

void OnTemplateAccepted(const api::ElasticTrainingJob& job,
                        std::shared_ptr<const planner::PodNeeds> needs, CheckedTemplate& known) {
  known.check = TemplateCheck{.generation = job.meta.generation, .accepted = true};
  if (needs != nullptr) {
    known.admitted_needs = {job.spec.learner_template.hash, std::move(needs)};
  }
}

// The check is repeated, since its cause (a quota, a policy, a missing class) may disappear without
// any event for us.
void OnTemplateRefused(const api::ElasticTrainingJob& job, std::string message, WallTime now,
                       CheckedTemplate& known) {
  const int refusals = IsOfThisGeneration(job, known) ? known.check->refusals : 0;
  known.check =
      TemplateCheck{.generation = job.meta.generation,
                    .message = std::move(message),
                    .refusals = refusals + 1,
                    .again_at = now + std::min(kFirstCheckDelay * (1 << std::min(refusals, 10)),
                                               kLongestCheckDelay)};
}

// Keeps an earlier result of this generation: an answer of the server says more than a failed
// check, and one report of a failed check is enough.
void OnTemplateUnchecked(const api::ElasticTrainingJob& job, std::string message,
                         CheckedTemplate& known) {
  if (IsOfThisGeneration(job, known)) return;
  known.check = TemplateCheck{
      .generation = job.meta.generation, .unanswered = true, .message = std::move(message)};
}

}  // namespace pliant::controller
