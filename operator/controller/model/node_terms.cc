#include "operator/controller/model/node_terms.h"

#include <utility>

namespace pliant::controller {
namespace {

using planner::NodeOperator;
using planner::NodeRequirement;

NodeTerm RequirementsOf(const api::LabelSelector& selector) {
  NodeTerm all = selector.match_expressions;
  for (const auto& [key, value] : selector.match_labels) {
    all.push_back({.key = key, .op = NodeOperator::kIn, .values = {value}});
  }
  return all;
}

NodeOperator Opposite(NodeOperator op) {
  switch (op) {
    case NodeOperator::kIn:
      return NodeOperator::kNotIn;
    case NodeOperator::kNotIn:
      return NodeOperator::kIn;
    case NodeOperator::kExists:
      return NodeOperator::kDoesNotExist;
    case NodeOperator::kDoesNotExist:
      return NodeOperator::kExists;
    case NodeOperator::kGt:  // selectors have neither of these
    case NodeOperator::kLt:
      break;
  }
  return op;
}

}  // namespace

NodeTerms BothHold(const NodeTerms& left, const NodeTerms& right) {
  if (right.empty() || left.size() * right.size() > kMaxNodeTerms) return left;
  if (left.empty()) return right;
  NodeTerms both;
  for (const NodeTerm& one : left) {
    for (const NodeTerm& other : right) {
      NodeTerm& term = both.emplace_back(one);
      term.insert(term.end(), other.begin(), other.end());
    }
  }
  return both;
}

NodeTerms NodesIn(const api::LabelSelector& selector) {
  if (selector.empty()) return {};
  return {RequirementsOf(selector)};
}

NodeTerms NodesNotIn(const api::LabelSelector& selector) {
  NodeTerms terms;
  for (NodeRequirement& requirement : RequirementsOf(selector)) {
    requirement.op = Opposite(requirement.op);
    terms.push_back({std::move(requirement)});
  }
  return terms;
}

}  // namespace pliant::controller
