#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "operator/controller/lifecycle/learner_policy.h"
#include "operator/controller/model/job_view.h"
#include "operator/controller/rounds/crash_notes.h"
#include "operator/controller/rounds/snapshot_builder.h"
#include "operator/kube/store.h"
#include "operator/planner/fit_memory.h"
#include "operator/planner/plan.h"

namespace pliant::controller {

// The plan's decision on a job; null: it is not planned.
const planner::Decision* DecisionOn(const planner::Plan& plan, const kube::NamespacedName& job);
std::optional<JobPlan> PlanOf(const planner::Plan& plan, const kube::NamespacedName& job);

// Jobs for which the plan says something that their status does not. `views` has all planned jobs,
// and others.
std::vector<kube::NamespacedName> JobsWithNews(const planner::Plan& plan,
                                               const std::map<kube::NamespacedName, JobView>& views,
                                               WallTime now);

// The plan for all jobs, and its input. Control thread.
class ClusterPlan {
 public:
  // `book` and `crash_notes` outlive it; null: nothing is noted.
  ClusterPlan(planner::Policy policy, const QueueBook& book, const std::string& operator_ns,
              CrashNotes* crash_notes)
      : policy_(policy), crash_notes_(crash_notes), builder_(book, operator_ns) {}

  // Take over a change of the cluster. Return whether it may change the plan.
  bool SeeNode(const kube::Store<api::Node>::Change& change);
  bool SeePod(const kube::Store<api::Pod>::Change& change);
  bool SeeQuota(const kube::Store<api::ResourceQuota>::Change& change);
  // The job as it is now; null: it is not planned, or gone.
  void SeeJob(const kube::NamespacedName& key, const JobView* planned, WallTime now);

  const planner::Plan& Make(WallTime now);
  // The plan that was made last.
  const planner::Plan& plan() const { return plan_; }
  // The input of that plan.
  const planner::ClusterSnapshot& snapshot() const { return builder_.snapshot(); }
  // The nodes as they are now, before a plan is made.
  const std::vector<planner::NodeView>& Nodes() { return builder_.Frame().nodes; }

 private:
  void TryAlone(const JobView& view, WallTime now);

  const planner::Policy policy_;
  CrashNotes* const crash_notes_;
  SnapshotBuilder builder_;
  planner::FitMemory fits_;
  planner::Plan plan_;
};

}  // namespace pliant::controller
