#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "operator/api/elastic_training_job.h"
#include "operator/api/pod.h"

namespace pliant::controller {

// The API server's answer to CheckTemplate.
struct TemplateCheck {
  std::int64_t generation = 0;  // of the job that was checked
  bool accepted = false;
  bool unanswered = false;  // the check itself failed: the template may be right or wrong
  std::string message;      // the server's own message, if it refused or failed
  int refusals = 0;         // in a row
  api::WallTime again_at;   // earliest time of the next check
  bool operator==(const TemplateCheck&) const = default;
};

// A learner's needs of its node, by its pod as the API server would admit it or has admitted it.
struct AdmittedNeeds {
  std::string template_hash;  // hash of the template that the pod was made from
  std::shared_ptr<const planner::PodNeeds> needs;
  bool operator==(const AdmittedNeeds&) const = default;
};

// The operator's knowledge of the job's template beyond its text.
struct CheckedTemplate {
  std::optional<TemplateCheck> check;
  std::optional<AdmittedNeeds> admitted_needs;
  bool operator==(const CheckedTemplate&) const = default;
};

// The needs of learners of the job's current template; null: not known. Points into `known`.
const AdmittedNeeds* AdmittedNeedsOf(const api::ElasticTrainingJob& job,
                                     const CheckedTemplate& known);

void ObserveTemplate(const api::ElasticTrainingJob& job, const std::vector<api::Pod>& learners,
                     CheckedTemplate& known);

// The job's template was accepted, for this job or for another job with the same one. `needs`: of a
// learner; null: the server's answer did not show them.
void OnTemplateAccepted(const api::ElasticTrainingJob& job,
                        std::shared_ptr<const planner::PodNeeds> needs, CheckedTemplate& known);
void OnTemplateRefused(const api::ElasticTrainingJob& job, std::string message, api::WallTime now,
                       CheckedTemplate& known);
// The server could not check the template; `message` says why.
void OnTemplateUnchecked(const api::ElasticTrainingJob& job, std::string message,
                         CheckedTemplate& known);

}  // namespace pliant::controller
