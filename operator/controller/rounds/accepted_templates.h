#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <string>

#include "operator/api/elastic_training_job.h"
#include "operator/controller/model/job_view.h"

namespace pliant::controller {

// Pod templates that the API server has recently accepted. Jobs often come in hundreds with one
// template, and checking each is a third of the cost of their admission. The server's rules (a
// quota, a policy) may change without any event for us, so an answer is valid for a minute; a later
// refusal comes when the pods are created, and is reported then. The job's name, its labels and all
// else that the operator itself puts into a pod do not count. Control thread.
class AcceptedTemplates {
 public:
  static constexpr std::chrono::seconds kGoodFor{60};
  static constexpr std::size_t kMax = 256;

  // `needs`: of a learner, as it was admitted; null: the server did not show it.
  void Add(const api::ElasticTrainingJob& job, std::shared_ptr<const planner::PodNeeds> needs,
           WallTime now);
  struct Accepted {
    WallTime at;
    std::shared_ptr<const planner::PodNeeds> needs;
  };
  // Null: no valid answer for its template.
  const Accepted* Find(const api::ElasticTrainingJob& job, WallTime now) const;
  std::size_t size() const { return accepted_.size(); }

 private:
  std::map<std::string, Accepted> accepted_;  // by all that tenants can set
};

}  // namespace pliant::controller
