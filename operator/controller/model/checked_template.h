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
  bool unanswered = false;  // the check itself failed: nothing is known of the template
  std::string message;      // the server's own sentence, if it refused or failed
  int refusals = 0;         // in a row
  api::WallTime again_at;   // not to be asked before
  bool operator==(const TemplateCheck&) const = default;
};

// What a learner asks of its node as the API server would admit it, or has.
struct AdmittedNeeds {
  std::string template_hash;  // of the template that it was made of
  std::shared_ptr<const planner::PodNeeds> needs;
  bool operator==(const AdmittedNeeds&) const = default;
};

// What is known of the job's template beyond its text.
struct CheckedTemplate {
  std::optional<TemplateCheck> check;
  std::optional<AdmittedNeeds> admitted_needs;
  bool operator==(const CheckedTemplate&) const = default;
};

// What is known of the learners of the job's present template; null: nothing. It points into
// `known`.
const AdmittedNeeds* AdmittedNeedsOf(const api::ElasticTrainingJob& job,
                                     const CheckedTemplate& known);

void ObserveTemplate(const api::ElasticTrainingJob& job, const std::vector<api::Pod>& learners,
                     CheckedTemplate& known);

// The job's template is right, by itself or as that of another job. `needs` of a learner; null:
// they were not shown.
void OnTemplateAccepted(const api::ElasticTrainingJob& job,
                        std::shared_ptr<const planner::PodNeeds> needs, CheckedTemplate& known);
void OnTemplateRefused(const api::ElasticTrainingJob& job, std::string message, api::WallTime now,
                       CheckedTemplate& known);
// The server could not check it, for this reason.
void OnTemplateUnchecked(const api::ElasticTrainingJob& job, std::string message,
                         CheckedTemplate& known);

}  // namespace pliant::controller
