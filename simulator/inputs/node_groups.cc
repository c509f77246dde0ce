#include "simulator/inputs/node_groups.h"

#include <algorithm>
#include <cstddef>
#include <utility>

#include "base/format.h"
#include "operator/replay/describe.h"
#include "simulator/inputs/values.h"
#include "simulator/model/csv.h"

namespace pliant::simulator {
namespace {

constexpr std::size_t kMinDigits = 2;

}  // namespace

Status NodeTotals::Add(const NodeGroup& group) {
  nodes_ += group.count;
  gpus_ += group.count * group.gpus;
  if (nodes_ > kMaxNodes) {
    return Invalid(Format("makes {} nodes; write at most {} in all", nodes_, kMaxNodes));
  }
  if (gpus_ > replay::kGpus.max) {
    return Invalid(Format("makes {} GPUs; write at most {} in all", gpus_, replay::kGpus.max));
  }
  return {};
}

Result<NodeGroup> ParseNodeGroup(std::string_view text) {
  const std::size_t cross = text.find('x');
  if (cross != std::string_view::npos) {
    const auto count = ParseWhole(text.substr(0, cross), {1, kMaxNodes});
    const auto gpus = ParseWhole(text.substr(cross + 1), {1, kMaxGpusPerNode});
    if (count && gpus) return NodeGroup{.count = *count, .gpus = *gpus, .labels = {}};
  }
  return Invalid(Format("is {}; write 1 to {} nodes, x, and 1 to {} GPUs of each, for example 2x8",
                        Shown(text), kMaxNodes, kMaxGpusPerNode));
}

Result<std::vector<planner::NodeView>> ParseNodes(std::string_view text) {
  std::vector<NodeGroup> groups;
  NodeTotals totals;
  while (true) {
    const std::size_t comma = text.find(',');
    const std::string_view word = text.substr(0, comma);
    auto group = ParseNodeGroup(word);
    if (!group) return Invalid("a group of nodes " + group.error().message);
    if (const Status within = totals.Add(*group); !within) {
      return Invalid(Format("nodes: {} {}", word, within.error().message));
    }
    groups.push_back(*std::move(group));
    if (comma == std::string_view::npos) return MakeNodes(groups);
    text.remove_prefix(comma + 1);
  }
}

std::vector<planner::NodeView> MakeNodes(const std::vector<NodeGroup>& groups) {
  std::int64_t total = 0;
  for (const NodeGroup& group : groups) total += group.count;
  const std::size_t digits = std::max(kMinDigits, std::to_string(total - 1).size());
  std::vector<planner::NodeView> nodes;
  for (const NodeGroup& group : groups) {
    for (std::int64_t each = 0; each < group.count; ++each) {
      planner::NodeView node{.name = Format("n{:0{}}", nodes.size(), digits)};
      node.allocatable.gpus = group.gpus;
      node.labels = group.labels;
      node.labels[planner::kHostnameLabel] = node.name;
      nodes.push_back(std::move(node));
    }
  }
  return nodes;
}

}  // namespace pliant::simulator
