#pragma once

#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "operator/api/node.h"
#include "operator/api/resource_quota.h"
#include "operator/controller/actions/action_runner.h"
#include "operator/controller/actions/assumed.h"
#include "operator/controller/model/job_view.h"
#include "operator/kube/store.h"

namespace pliant::controller {

// What the operator follows of the cluster. All outlive whoever is given this.
struct ClusterStores {
  kube::Store<api::ElasticTrainingJob>& jobs;
  kube::Store<api::Pod>& pods;  // of everybody
  kube::Store<api::Node>& nodes;
  kube::Store<api::Service>& services;  // of jobs
  kube::Store<api::ResourceQuota>& quotas;

  bool synced() const {
    return jobs.synced() && pods.synced() && nodes.synced() && services.synced() && quotas.synced();
  }
  bool current() const {
    return jobs.current() && pods.current() && nodes.current() && services.current() &&
           quotas.current();
  }
};

// Puts together what is known of each job: what the stores show, what this program has just done or
// is doing, and what it remembers. A job is looked at again only when something about it may have
// changed: there may be thousands that wait. Control thread.
class JobTable {
 public:
  using Views = std::map<kube::NamespacedName, JobView>;

  // Before the first object comes into the stores.
  explicit JobTable(ClusterStores stores);

  // All jobs as they are now. What their coordinators say is for the caller to fill in, and stays
  // as it was filled in.
  Views& Refresh(WallTime now);
  // Those that the last Refresh saw anew, and those that went.
  const std::set<kube::NamespacedName>& refreshed() const { return refreshed_; }

  Views& views() { return views_; }

  // Of a job that the last Refresh has seen, which is then seen anew by the next.
  JobSoftState& SoftState(const std::string& job_uid);

  // Something about the job may have changed that the stores do not show.
  void LookAt(const std::string& job_uid);

  // Of the jobs seen those to which an object belongs or belonged, from a change that its store
  // tells: it may change hands.
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

  // What the batch orders counts as done until it has been tried.
  void Begin(const std::shared_ptr<const Batch>& batch, WallTime now);
  // It was tried: what was done counts until the stores show it. The action whose outcome is
  // unknown goes on to count as done. Of a job that is gone nothing counts any more.
  void Settle(const Batch& batch, const BatchResult& result, WallTime now);

  const ClusterStores& stores() const { return stores_; }

 private:
  using KeysByOwner = std::map<std::string, std::vector<std::string>, std::less<>>;

  void ForgetJob(const api::ObjectMeta& job);
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
  const kube::Store<api::Pod>::IndexId pods_by_owner_;
  Assumed<api::ElasticTrainingJob> assumed_jobs_;
  // By "namespace/name", as all three. A pod that is made twice, or forgotten while it runs, is
  // harm done.
  Assumed<api::Pod> assumed_pods_{WhenOverdue::kAsk};
  Assumed<api::Service> assumed_services_;
  Views views_;
  std::map<std::string, kube::NamespacedName, std::less<>> keys_;  // of the views, by uid
  std::set<kube::NamespacedName> stale_;                           // to be seen anew
  std::set<kube::NamespacedName> refreshed_;
  bool in_use_ = false;  // a replica that stands by keeps no views
};

}  // namespace pliant::controller
