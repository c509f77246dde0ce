#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <string>

#include "operator/api/elastic_training_job.h"
#include "operator/controller/model/job_view.h"

namespace pliant::controller {

// Pod templates that the API server has lately found to be right. Jobs often come in hundreds of
// one template, and asking about each is a third of what their admission costs. What the server
// goes by (a quota, a policy) may change without a word to us, so an answer is good for a minute;
// what is refused after all, is when the pods are made, and told then. The job's name, its labels
// and what else the operator itself puts into a pod do not count. Control thread.
class AcceptedTemplates {
 public:
  static constexpr std::chrono::seconds kGoodFor{60};
  static constexpr std::size_t kMost = 256;

  // `needs`: of a learner, as it was admitted; null: the server did not show it.
  void Add(const api::ElasticTrainingJob& job, std::shared_ptr<const planner::PodNeeds> needs,
           WallTime now);
  struct Accepted {
    WallTime at;
    std::shared_ptr<const planner::PodNeeds> needs;
  };
  // Null: nothing is known of its template.
  const Accepted* Find(const api::ElasticTrainingJob& job, WallTime now) const;
  std::size_t size() const { return accepted_.size(); }

 private:
  std::map<std::string, Accepted> accepted_;  // by all that tenants have a say in
};

}  // namespace pliant::controller
