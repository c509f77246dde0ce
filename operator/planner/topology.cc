#include "operator/planner/topology.h"

#include <algorithm>
#include <map>
#include <string_view>
#include <utility>

namespace pliant::planner {
namespace {

// The domains of one level, each within one of `outer`.
std::vector<int> DomainsBy(const std::string& key, std::span<const NodeView* const> nodes,
                           const std::vector<int>& outer) {
  std::vector<int> domains(nodes.size());
  std::map<std::pair<int, std::string_view>, int> known;
  int next = 0;
  for (std::size_t node = 0; node < nodes.size(); ++node) {
    domains[node] = next;
    if (nodes[node] != nullptr) {
      const auto label = nodes[node]->labels.find(key);
      if (label != nodes[node]->labels.end()) {
        const std::pair domain(outer[node], std::string_view(label->second));
        domains[node] = known.emplace(domain, next).first->second;
      }
    }
    if (domains[node] == next) ++next;
  }
  return domains;
}

bool HasLabel(const NodeView* node, const std::string& key) {
  return node != nullptr && node->labels.contains(key);
}

}  // namespace

Topology::Topology(std::span<const std::string> keys, std::span<const NodeView* const> nodes) {
  std::vector<int> outer(nodes.size());
  for (const std::string& key : keys.first(std::min<std::size_t>(keys.size(), kMaxTopologyKeys))) {
    const bool is_used =
        std::ranges::any_of(nodes, [&](const NodeView* node) { return HasLabel(node, key); });
    if (!is_used) continue;
    outer = DomainsBy(key, nodes, outer);
    domains_.push_back(outer);
  }
}

}  // namespace pliant::planner
