#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "operator/api/pod.h"
#include "operator/api/time.h"
#include "operator/controller/model/learner_clocks.h"

namespace pliant::controller {

// A node on which this job's learners failed.
struct NodeStrikes {
  int count = 0;
  api::WallTime avoid_until;
  bool operator==(const NodeStrikes&) const = default;
};

struct NodeHistory {
  std::map<std::string, NodeStrikes> strikes;  // by node
  std::set<std::string> ends_seen;             // uids of ended pods that were judged already
  std::set<std::string> evictions_seen;        // the same, of evicted ones
  bool operator==(const NodeHistory&) const = default;
};

// A learner that was evicted from its node.
struct Eviction {
  std::string pod;
  std::string node;
  std::string why;            // "TaintManagerEviction: ..."
  api::WallTime avoid_until;  // the job avoids the node until then
};

// Returns the new evictions. `clocks`: as they were before these learners ended; they show which of
// them had been asked to leave.
std::vector<Eviction> ObserveNodes(const std::vector<api::Pod>& learners,
                                   const LearnerClocks& clocks, api::WallTime now,
                                   NodeHistory& nodes);

}  // namespace pliant::controller
