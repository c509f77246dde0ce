#pragma once

#include <vector>

#include "operator/api/label_selector.h"

// Sets of nodes, as required node affinity describes them: of each term all requirements hold, and
// one term is enough.
namespace pliant::controller {

using NodeTerm = std::vector<planner::NodeRequirement>;
using NodeTerms = std::vector<NodeTerm>;  // empty: all nodes

// The nodes that are in both sets. If that takes more than kMaxNodeTerms, returns `left`.
inline constexpr std::size_t kMaxNodeTerms = 64;
NodeTerms BothHold(const NodeTerms& left, const NodeTerms& right);

// The nodes that a selector matches, and those that it does not match. A selector that is empty
// matches all nodes; then the second set cannot be described, and is all nodes, too.
NodeTerms NodesIn(const api::LabelSelector& selector);
NodeTerms NodesNotIn(const api::LabelSelector& selector);

}  // namespace pliant::controller
