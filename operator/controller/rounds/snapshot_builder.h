#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "operator/api/node.h"
#include "operator/api/pod.h"
#include "operator/api/resource_quota.h"
#include "operator/controller/model/job_view.h"
#include "operator/kube/store.h"
#include "operator/planner/cluster_snapshot.h"

namespace pliant::controller {

// Keeps what the planner is to know in step with what is known, change by change: a cluster has
// tens of thousands of pods and jobs, and a plan is asked for whenever a few of them have changed.
class SnapshotBuilder {
 public:
  void SeeNode(const kube::Store<api::Node>::Change& change);
  // Of all pods of the cluster. Those that are learners of jobs seen count there, all others as
  // taking room on their nodes, also where the scheduler or their controller only promises it to
  // them.
  void SeePod(const kube::Store<api::Pod>::Change& change);
  void SeeQuota(const kube::Store<api::ResourceQuota>::Change& change);
  // The job as it is now; null: it is not planned, or gone.
  void SeeJob(const kube::NamespacedName& key, const JobView* planned);

  const planner::ClusterSnapshot& Build(WallTime now);
  // Those that are there now. What others take of one that was not there at the last Build is not
  // counted yet.
  const std::vector<planner::NodeView>& Nodes();
  // As it was built last.
  const planner::ClusterSnapshot& snapshot() const { return snapshot_; }

 private:
  template <typename T>
  using Changes = std::map<kube::NamespacedName, std::optional<T>>;  // nothing: it is gone

  // Pods on one node that are not labelled as ours. What they take is summed up anew when one of
  // them changes: sums stay at their bounds, so that nothing can be taken off them again.
  struct ForeignUsage {
    std::map<kube::NamespacedName, planner::Resources> pods;
    std::optional<planner::Resources> sum;

    const planner::Resources& Sum();
  };

  struct Learners {
    planner::Resources needs;  // of each
    std::vector<std::string> uids;
  };

  // Learners of planned jobs: what each counts for, by the pod's uid. Valid until a job is seen.
  using Ours = std::map<std::string_view, const planner::Resources*>;

  Ours OurLearners() const;
  void FillForeign(const Ours& ours);
  void FillBudgets(const Ours& ours);
  void SeeGpus(const kube::Store<api::Pod>::Change& change);

  Changes<planner::NodeView> changed_nodes_;  // since the last Build, as is the next
  std::uint64_t node_versions_ = 0;
  Changes<planner::JobView> changed_jobs_;
  std::map<std::string, ForeignUsage> foreign_usage_;  // by node
  // Pods that say that they belong to a job. Whether they do is seen each time: jobs come and go.
  std::map<kube::NamespacedName, std::shared_ptr<const api::Pod>> labelled_;
  std::map<kube::NamespacedName, Learners> learners_;                  // by planned job
  std::map<std::string, std::map<std::string, std::int64_t>> quotas_;  // GPUs, by namespace, name
  // What pods ask for that are not labelled as ours and have not ended: that counts wherever they
  // are.
  std::map<std::string, std::map<std::string, std::int64_t>> others_gpus_;  // by namespace, name
  planner::ClusterSnapshot snapshot_;  // nodes and jobs in the order of their names
};

// One job, as the planner sees it.
planner::JobView PlannerView(const JobView& view);

}  // namespace pliant::controller
