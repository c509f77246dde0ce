#pragma once

#include <chrono>
#include <map>
#include <string>

#include "operator/api/pod.h"
#include "operator/planner/cluster_snapshot.h"

// The room that pods take which are no learners.
namespace pliant::controller {

// The default scheduler judges a pod within seconds. One that nobody judges does not run.
inline constexpr std::chrono::seconds kUnjudged{60};

// The node where such a pod takes room by the scheduler's word; "": it takes none. A gated pod
// takes none, not even a learner of a job that is gone.
std::string RoomTakenOn(const api::Pod& pod);

// The node to which a controller has pinned a pod on which the scheduler has said nothing; "":
// none. Anybody who may create a pod may pin it to a node that has no room for it: so only pins of
// pods with a controller count. Anybody may create a DaemonSet whose pods fit no node, too: so the
// scheduler's refusal ends it.
std::string RoomClaimedOn(const api::Pod& pod);

// The use of one node.
struct UseOfNode {
  planner::Resources sum;
  std::map<std::string, planner::Resources> by_namespace;

  void Add(const std::string& name_space, const planner::Resources& taken);
  planner::ForeignUsers Users() const;
};

}  // namespace pliant::controller
