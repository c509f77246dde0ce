#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "operator/api/elastic_training_job.h"
#include "operator/api/gpu_pool.h"
#include "operator/api/name_space.h"
#include "operator/api/training_queue.h"
#include "operator/controller/model/node_terms.h"
#include "operator/planner/cluster_snapshot.h"

namespace pliant::controller {

// The consequences of its queue for one job.
struct QueueMembership {
  std::string pool{planner::kBuiltInPool};
  std::chrono::seconds half_life = api::TrainingQueueSpec{}.service_half_life;
  // Why its queue does not admit it, a sentence; "": it may. A job that was admitted before
  // continues.
  std::string refusal;
  bool operator==(const QueueMembership&) const = default;
};

// A job with the values that count: where it asks for more than its queue and pool allow, those are
// lower, and spec.limited says so.
struct JobInQueue {
  std::shared_ptr<const api::ElasticTrainingJob> job;  // never null
  QueueMembership membership;
};

// Whether the operator may read queues, pools and namespaces. In single namespaces it may not:
// there is the built-in queue only.
enum class QueueRights { kAll, kNone };

// The administrator's queues and pools, and what follows from them for jobs and nodes. A queue or
// pool that is not understood keeps its last spec that was.
class QueueBook {
 public:
  // `gpu_resource`: that of the operator, which pools count as GPUs that name no other.
  explicit QueueBook(QueueRights rights = QueueRights::kAll,
                     std::string gpu_resource = "nvidia.com/gpu")
      : rights_(rights), gpu_resource_(std::move(gpu_resource)) {}

  // Null: it is gone. Return whether that may change anything for jobs or nodes.
  bool SetQueue(const std::string& name, std::shared_ptr<const api::TrainingQueue> queue);
  bool SetPool(const std::string& name, std::shared_ptr<const api::GpuPool> pool);
  bool SetNamespace(const std::string& name, std::shared_ptr<const api::Namespace> name_space);

  // `pool_before`: where it stays if its queue does not exist.
  JobInQueue Apply(std::shared_ptr<const api::ElasticTrainingJob> job,
                   const std::string& pool_before = std::string(planner::kBuiltInPool)) const;

  // The pool of a node with these labels: of those whose selectors match, the oldest. "": it is in
  // none.
  std::string PoolOf(const std::map<std::string, std::string>& labels) const;
  // The extended resource that counts as GPU in the pool; "": that of the operator.
  std::string ResourceOf(const std::string& pool) const;
  // The nodes that would belong to the pool if they were added, as node affinity describes them.
  NodeTerms TermsOfPool(const std::string& pool) const;
  // Older pools that have nodes with these labels, which `pool` would have otherwise.
  bool IsContested(const std::string& pool, const std::map<std::string, std::string>& labels) const;

  std::vector<planner::QueueView> QueueViews() const;
  std::vector<planner::PoolView> PoolViews() const;
  // As the API server has them.
  const std::map<std::string, std::shared_ptr<const api::TrainingQueue>>& queues() const {
    return queues_;
  }
  const std::map<std::string, std::shared_ptr<const api::GpuPool>>& pools() const { return pools_; }

  // Changes whenever a queue, pool or namespace may mean something else.
  std::uint64_t version() const { return version_; }

 private:
  const api::TrainingQueueSpec* FindQueue(const std::string& name) const;
  const api::GpuPoolSpec* FindPool(const std::string& name) const;
  std::string WhyRefused(const api::ElasticTrainingJob& job,
                         const api::TrainingQueueSpec* queue) const;
  void SortPools();

  const QueueRights rights_;
  const std::string gpu_resource_;
  std::map<std::string, std::shared_ptr<const api::TrainingQueue>> queues_;
  std::map<std::string, std::shared_ptr<const api::GpuPool>> pools_;
  std::map<std::string, api::TrainingQueueSpec> queue_specs_;  // the last that were understood
  std::map<std::string, api::GpuPoolSpec> pool_specs_;
  std::vector<std::string> pools_by_age_;
  std::map<std::string, std::map<std::string, std::string>> namespace_labels_;
  std::uint64_t version_ = 1;
};

}  // namespace pliant::controller
