#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "operator/api/fields.h"

// A label selector of Kubernetes (metav1.LabelSelector): all its parts must hold.
namespace pliant::api {

enum class LabelOperator { kIn, kNotIn, kExists, kDoesNotExist };
std::string_view ToString(LabelOperator op);

struct LabelRequirement {
  std::string key;
  LabelOperator op = LabelOperator::kExists;
  std::vector<std::string> values;  // of kIn and kNotIn

  bool operator==(const LabelRequirement&) const = default;
};

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
