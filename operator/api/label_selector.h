#pragma once

#include <map>
#include <string>
#include <vector>

#include "operator/api/fields.h"
#include "operator/planner/cluster_snapshot.h"

// A label selector of Kubernetes (metav1.LabelSelector): all its parts must hold.
namespace pliant::api {

// Gt and Lt are only for nodes.
using LabelOperator = planner::NodeOperator;
using LabelRequirement = planner::NodeRequirement;

struct LabelSelector {
  std::map<std::string, std::string> match_labels;
  std::vector<LabelRequirement> match_expressions;

  bool operator==(const LabelSelector&) const = default;

  bool empty() const { return match_labels.empty() && match_expressions.empty(); }
  // An empty selector matches everything. As in Kubernetes, NotIn matches where the label is
  // absent.
  bool Matches(const std::map<std::string, std::string>& labels) const;
};

// `fields` is the selector itself.
LabelSelector ReadLabelSelector(Fields& fields);

}  // namespace pliant::api
