#pragma once

#include <map>
#include <set>
#include <string>

#include "operator/api/time.h"

namespace pliant::controller {

struct JobView;

// A node on which this job's learners failed.
struct NodeStrikes {
  int count = 0;
  api::WallTime avoid_until;
  bool operator==(const NodeStrikes&) const = default;
};

struct NodeHistory {
  std::map<std::string, NodeStrikes> strikes;  // by node
  std::set<std::string> ends_seen;  // uids of ended pods that struck their node, or did not
  bool operator==(const NodeHistory&) const = default;
};

// While it is known who of the ended learners was told to leave: before ObserveClocks.
void ObserveNodes(const JobView& view, api::WallTime now, NodeHistory& nodes);

}  // namespace pliant::controller
