#pragma once

#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "operator/api/gpu_pool.h"
#include "operator/api/name_space.h"
#include "operator/api/node.h"
#include "operator/api/resource_quota.h"
#include "operator/api/training_queue.h"
#include "operator/controller/actions/action_runner.h"
#include "operator/controller/actions/assumed.h"
#include "operator/controller/model/job_view.h"
#include "operator/kube/store.h"

namespace pliant::controller {

// The stores of all objects that the operator watches. They outlive every user of this struct.
struct ClusterStores {
  kube::Store<api::ElasticTrainingJob>& jobs;
  kube::Store<api::Pod>& pods;  // all pods of the cluster
  kube::Store<api::Node>& nodes;
  kube::Store<api::Service>& services;  // of jobs
  kube::Store<api::ResourceQuota>& quotas;
  // These three stay empty, without a list, if the operator may not read them.
  kube::Store<api::TrainingQueue>& queues;
  kube::Store<api::GpuPool>& pools;
  kube::Store<api::Namespace>& namespaces;

  bool synced() const {
    return jobs.synced() && pods.synced() && nodes.synced() && services.synced() &&
           quotas.synced() && queues.synced() && pools.synced() && namespaces.synced();
  }
  bool current() const {
    return jobs.current() && pods.current() && nodes.current() && services.current() &&
           quotas.current() && queues.current() && pools.current() && namespaces.current();
  }
};

// Combines what is known of each job: what the stores show, what this process has just done or is
// doing, and the job's soft state. A job is looked at again only when something about it may have
// changed, since thousands may wait. Control thread.
class JobTable {
 public:
  using Views = std::map<kube::NamespacedName, JobView>;

  // Construct it before the first object enters the stores.
  explicit JobTable(ClusterStores stores, QueueRights rights = QueueRights::kAll,
                    std::string gpu_resource = "nvidia.com/gpu");

  // Returns all jobs as they are now. The caller fills in what their coordinators report, and
  // Refresh keeps that.
  Views& Refresh(WallTime now);
  // Jobs whose views the last Refresh has rebuilt or dropped.
  const std::set<kube::NamespacedName>& refreshed() const { return refreshed_; }

  Views& views() { return views_; }
  // Whether the last Refresh has seen the job.
  bool HasJob(const std::string& job_uid) const { return keys_.contains(job_uid); }
  const QueueBook& book() const { return book_; }

  // The soft state of a job that the last Refresh has seen; the next one rebuilds the job's view.
  JobSoftState& SoftState(const std::string& job_uid);

  // Has the next Refresh rebuild the job's view: something may have changed that the stores do not
  // show.
  void LookAt(const std::string& job_uid);

  // The jobs seen that own or owned the object of `change`, which comes from a store: the owner may
  // change.
  template <typename Change>
  std::set<kube::NamespacedName> OwnersIn(const Change& change) const {
    std::set<kube::NamespacedName> owners;
    for (const auto& object : {change.before, change.after}) {
      if (object == nullptr) continue;
      const auto owner = keys_.find(object->meta.owner_uid);
      if (owner == keys_.end() || owner->second.ns != object->meta.name_space) continue;
      owners.insert(owner->second);
    }
    return owners;
  }

  // The batch counts as done until it has been tried.
  void Begin(const std::shared_ptr<const Batch>& batch, WallTime now);
  // Whether a write of this pod of the job has begun and is not settled.
  bool IsWriteUnderWay(const api::ObjectMeta& job, const std::string& pod) const;
  // The batch was tried: what was done counts until the stores show it. An action of unknown
  // outcome still counts as done. If the job is gone, nothing counts any longer.
  void Settle(const Batch& batch, const BatchResult& result, WallTime now);

  const ClusterStores& stores() const { return stores_; }

 private:
  using KeysByOwner = std::map<std::string, std::vector<std::string>, std::less<>>;

  void ForgetJob(const api::ObjectMeta& job);
  void LookAtAll();
  void Begin(Effect effect, const api::ObjectMeta& job, WallTime now);
  // `error`: of the action that has this effect, if it failed.
  void Settle(const Effect& effect, const api::ObjectMeta& job, const BatchResult& result,
              const std::optional<kube::KubeError>& error, WallTime now);
  void SettleWritten(const std::string& key, const std::string& replaced_version,
                     const std::vector<api::Pod>& written, WallTime now);
  void SettlePodDeleted(const std::string& key, bool done, WallTime now);
  void SettleFound(const api::Pod& pod, WallTime now);
  void Abandon(const Batch& batch, WallTime now);
  void LookAtAssumed();
  // `before`: the job as it was seen last; `assumed`: pods that the store may not know yet.
  JobView ViewOf(std::shared_ptr<const api::ElasticTrainingJob> job, JobView before,
                 const KeysByOwner& assumed, WallTime now);
  void AddPods(JobView& view, const KeysByOwner& assumed, WallTime now);
  void Drop(Views::iterator view);
  std::shared_ptr<const api::Pod> FindPod(const std::string& key, WallTime now);
  std::shared_ptr<const api::Service> FindService(const std::string& key, WallTime now);

  const ClusterStores stores_;
  QueueBook book_;
  const kube::Store<api::Pod>::IndexId pods_by_owner_;
  Assumed<api::ElasticTrainingJob> assumed_jobs_;
  // Keys are "namespace/name" in all three. To create a pod twice, or to forget one that runs, does
  // harm.
  Assumed<api::Pod> assumed_pods_{WhenOverdue::kAsk};
  Assumed<api::Service> assumed_services_;
  Views views_;
  std::map<std::string, kube::NamespacedName, std::less<>> keys_;  // of the views, by uid
  std::set<kube::NamespacedName> stale_;                           // views to rebuild
  std::set<kube::NamespacedName> refreshed_;
  bool in_use_ = false;  // a standby replica keeps no views
};

}  // namespace pliant::controller
