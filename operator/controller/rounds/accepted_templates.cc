#include "operator/controller/rounds/accepted_templates.h"

#include <algorithm>
#include <utility>

#include "base/format.h"

namespace pliant::controller {
namespace {

std::string KeyOf(const api::ElasticTrainingJob& job) {
  const api::JobSpec& spec = job.spec;
  return Format("{}\n{}\n{}\n{}\n{}", job.meta.name_space, spec.elastic.gpus_per_learner,
                spec.gpu_resource, spec.resize.grace_period.count(), spec.learner_template.hash);
}

}  // namespace

void AcceptedTemplates::Add(const api::ElasticTrainingJob& job,
                            std::shared_ptr<const planner::PodNeeds> needs, WallTime now) {
  std::erase_if(accepted_, [now](const auto& each) { return now >= each.second.at + kGoodFor; });
  accepted_[KeyOf(job)] = {.at = now, .needs = std::move(needs)};
  if (accepted_.size() > kMax) {
    accepted_.erase(
        std::ranges::min_element(accepted_, {}, [](const auto& each) { return each.second.at; }));
  }
}

const AcceptedTemplates::Accepted* AcceptedTemplates::Find(const api::ElasticTrainingJob& job,
                                                           WallTime now) const {
  if (accepted_.empty()) return nullptr;
  const auto found = accepted_.find(KeyOf(job));
  if (found == accepted_.end() || now >= found->second.at + kGoodFor) return nullptr;
  return &found->second;
}

}  // namespace pliant::controller
