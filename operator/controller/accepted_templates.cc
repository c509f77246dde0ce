#include "operator/controller/accepted_templates.h"

#include <algorithm>

#include "base/format.h"

namespace pliant::controller {
namespace {

std::string KeyOf(const api::ElasticTrainingJob& job) {
  const api::JobSpec& spec = job.spec;
  return Format("{}\n{}\n{}\n{}", job.meta.name_space, spec.elastic.gpus_per_learner,
                spec.resize.grace_period.count(), spec.learner_template.hash);
}

}  // namespace

void AcceptedTemplates::Add(const api::ElasticTrainingJob& job, WallTime now) {
  std::erase_if(accepted_, [now](const auto& each) { return now >= each.second + kGoodFor; });
  accepted_[KeyOf(job)] = now;
  if (accepted_.size() > kMost) {
    accepted_.erase(
        std::ranges::min_element(accepted_, {}, [](const auto& each) { return each.second; }));
  }
}

bool AcceptedTemplates::Knows(const api::ElasticTrainingJob& job, WallTime now) const {
  if (accepted_.empty()) return false;
  const auto at = accepted_.find(KeyOf(job));
  return at != accepted_.end() && now < at->second + kGoodFor;
}

}  // namespace pliant::controller
