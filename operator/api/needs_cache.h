#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <mutex>

#include "operator/planner/cluster_snapshot.h"

namespace pliant::api {

// Equal needs of several pods, held once: the pods of a Deployment, or the learners of a job, have
// the same. Forgets needs that nobody holds. Any thread.
class NeedsCache {
 public:
  std::shared_ptr<const planner::PodNeeds> Share(planner::PodNeeds needs);
  std::size_t size() const;

 private:
  struct ByValue {
    bool operator()(const planner::PodNeeds* left, const planner::PodNeeds* right) const {
      return *left < *right;
    }
  };
  struct Entries {
    std::mutex mutex;
    std::map<const planner::PodNeeds*, std::weak_ptr<const planner::PodNeeds>, ByValue> by_value;
  };

  // Shared with the needs, which may outlive the cache.
  const std::shared_ptr<Entries> entries_ = std::make_shared<Entries>();
};

}  // namespace pliant::api
