#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "operator/api/node.h"
#include "operator/api/pod.h"
#include "operator/api/resource_quota.h"
#include "operator/controller/model/job_view.h"
#include "operator/controller/rounds/room_of_pods.h"
#include "operator/kube/store.h"
#include "operator/planner/cluster_snapshot.h"

namespace pliant::controller {

// Keeps the planner's input up to date, change by change: a cluster has tens of thousands of pods
// and jobs, and a plan is needed whenever a few of them have changed.
class SnapshotBuilder {
 public:
  // Pods of others that wait for a node: the oldest of each namespace, and of all.
  static constexpr std::size_t kMaxPendingOfNamespace = 256;
  static constexpr std::size_t kMaxPending = 2048;

  // `book` outlives the builder. Placeholders are pods of the operator's namespace.
  SnapshotBuilder(const QueueBook& book, std::string operator_ns)
      : book_(book), operator_ns_(std::move(operator_ns)) {}

  void SeeNode(const kube::Store<api::Node>::Change& change);
  // Called for all pods of the cluster. Learners of the jobs seen count for their jobs; all others
  // take room on their nodes, even if the scheduler has only nominated the node. A pod that its
  // controller has pinned to a node takes room there until the scheduler judges it, but at most for
  // kUnjudged. Placeholders take none: they go when a learner comes.
  void SeePod(const kube::Store<api::Pod>::Change& change);
  void SeeQuota(const kube::Store<api::ResourceQuota>::Change& change);
  // The job as it is now; null: it is not planned, or gone.
  void SeeJob(const kube::NamespacedName& key, const JobView* planned);

  const planner::ClusterSnapshot& Build(WallTime now);
  // The nodes, queues and pools as they are now, with time and jobs as of the last Build. On a node
  // that is new since then, the use by other pods is not counted yet.
  const planner::ClusterSnapshot& Frame();
  // The snapshot that was built last.
  const planner::ClusterSnapshot& snapshot() const { return snapshot_; }
  // When the passing of time alone changes that snapshot; absent: never.
  std::optional<WallTime> again_at() const { return again_at_; }

 private:
  template <typename T>
  using Changes = std::map<kube::NamespacedName, std::optional<T>>;  // nullopt: it is gone

  // Pods on one node that are not labelled as ours. Their use is summed up again when one of them
  // changes: sums saturate, so that nothing can be subtracted from them.
  struct ForeignUsage {
    std::map<kube::NamespacedName, std::shared_ptr<const api::Pod>> pods;
    std::optional<UseOfNode> use;
    std::string resource;  // that `use` counts as GPUs

    const UseOfNode& Use(const std::string& resource);
  };

  struct Learners {
    planner::Resources needs;  // of each learner
    std::vector<std::string> uids;
  };

  // Learners of planned jobs: the resources that each counts for, by the pod's uid. Valid until the
  // next SeeJob.
  using Ours = std::map<std::string_view, const planner::Resources*>;

  Ours OurLearners() const;
  std::optional<planner::NodeView> ViewOf(const api::Node& node) const;
  void FillQueues();
  void FillNodes();
  void FillForeign(const Ours& ours);
  void FillBudgets(const Ours& ours);
  void FillPending();
  void SeeGpus(const kube::Store<api::Pod>::Change& change);
  void SeePending(const kube::Store<api::Pod>::Change& change);

  const QueueBook& book_;
  const std::string operator_ns_;
  std::uint64_t book_version_ = 0;
  struct SeenNode {
    std::shared_ptr<const api::Node> node;
    std::uint64_t version = 0;
  };

  std::map<std::string, SeenNode> nodes_;  // that offer an extended resource, by name
  std::set<std::string> changed_nodes_;    // since the last Build, as are changed_jobs_
  std::uint64_t node_versions_ = 0;
  Changes<planner::JobView> changed_jobs_;
  std::map<std::string, ForeignUsage> foreign_usage_;  // by node
  // Pods that are not labelled as ours, and that wait for the scheduler's word on the node to which
  // their controller has pinned them.
  std::map<kube::NamespacedName, std::shared_ptr<const api::Pod>> unjudged_;
  // Pods whose labels say that they belong to a job. Whether they do is checked each time: jobs
  // come and go.
  std::map<kube::NamespacedName, std::shared_ptr<const api::Pod>> labelled_;
  std::map<kube::NamespacedName, Learners> learners_;                        // by planned job
  std::map<std::string, std::map<std::string, api::ResourceQuota>> quotas_;  // by namespace, name
  // Pods that ask for GPUs, are not labelled as ours and have not ended: they count on any node. By
  // namespace, then name.
  std::map<std::string, std::map<std::string, std::shared_ptr<const api::Pod>>> others_gpus_;
  // Pods that wait for a node with GPUs. By namespace, then from the oldest on.
  std::map<std::string, std::map<std::pair<WallTime, std::string>, std::shared_ptr<const api::Pod>>>
      pending_;
  bool pending_changed_ = false;
  std::optional<WallTime> again_at_;
  planner::ClusterSnapshot snapshot_;  // nodes and jobs sorted by name
};

// One job, as the planner sees it.
planner::JobView PlannerView(const JobView& view);

}  // namespace pliant::controller
