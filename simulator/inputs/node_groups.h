#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "operator/planner/cluster_snapshot.h"

namespace pliant::simulator {

inline constexpr std::int64_t kMaxNodes = 100'000;
inline constexpr std::int64_t kMaxGpusPerNode = 1024;

// Nodes that are alike.
struct NodeGroup {
  std::int64_t count = 1;
  std::int64_t gpus = 1;  // of each node
  std::map<std::string, std::string> labels;
  bool operator==(const NodeGroup&) const = default;
};

// Counts the nodes and GPUs of groups. kInvalid, the end of a sentence: there are too many.
class NodeTotals {
 public:
  Status Add(const NodeGroup& group);

 private:
  std::int64_t nodes_ = 0;
  std::int64_t gpus_ = 0;
};

// Parses "2x8": 2 nodes of 8 GPUs. An error is the end of a sentence.
Result<NodeGroup> ParseNodeGroup(std::string_view text);

// Parses "16x4" or "16x4,2x8". An error is a sentence with its remedy.
Result<std::vector<planner::NodeView>> ParseNodes(std::string_view text);

// Ready nodes of pool default, named n00, n01, ... over all groups, with as many digits as the last
// one needs. They have no CPU and no memory, as learners of simulated jobs ask for none.
std::vector<planner::NodeView> MakeNodes(const std::vector<NodeGroup>& groups);

}  // namespace pliant::simulator
