#include "operator/api/label_selector.h"

#include <algorithm>
#include <array>

#include "operator/api/enum_field.h"
#include "operator/planner/feasibility.h"

namespace pliant::api {
namespace {

// As in the CRDs.
constexpr std::size_t kMaxRequirements = 32;  // of each kind
constexpr std::size_t kMaxLabelValues = 64;
constexpr std::size_t kMaxKeyBytes = 317;  // a DNS subdomain of 253, "/", and a name of 63
constexpr std::size_t kMaxValueBytes = 63;

constexpr std::array kLabelOperators = {LabelOperator::kIn, LabelOperator::kNotIn,
                                        LabelOperator::kExists, LabelOperator::kDoesNotExist};

bool IsKey(std::string_view text) { return !text.empty() && text.size() <= kMaxKeyBytes; }
bool IsValue(std::string_view text) { return text.size() <= kMaxValueBytes; }

std::map<std::string, std::string> ReadMatchLabels(Fields& fields) {
  auto labels = fields.Strings("matchLabels", kMaxRequirements);
  for (const auto& [key, value] : labels) {
    if (!IsKey(key)) fields.Wrong("matchLabels", "has a key that is empty or too long");
    if (!IsValue(value)) fields.Wrong("matchLabels", "has a value that is too long");
  }
  return labels;
}

LabelRequirement ReadLabelRequirement(Fields& fields) {
  LabelRequirement requirement{.key = fields.String("key", "", kMaxKeyBytes)};
  if (requirement.key.empty()) fields.Wrong("key", "missing");
  if (!fields.Has("operator")) fields.Wrong("operator", "missing");
  requirement.op = ReadEnum(fields, "operator", LabelOperator::kIn, kLabelOperators);
  requirement.values = fields.StringList("values", kMaxLabelValues);
  if (!std::ranges::all_of(requirement.values, IsValue)) {
    fields.Wrong("values", "has an item that is too long");
  }
  const bool has_values =
      requirement.op == LabelOperator::kIn || requirement.op == LabelOperator::kNotIn;
  if (has_values && requirement.values.empty()) fields.Wrong("values", "empty");
  if (!has_values && !requirement.values.empty()) {
    fields.Wrong("values", "not empty, although the operator has no values");
  }
  return requirement;
}

}  // namespace

bool LabelSelector::Matches(const std::map<std::string, std::string>& labels) const {
  const auto is_there = [&labels](const auto& wanted) {
    const auto label = labels.find(wanted.first);
    return label != labels.end() && label->second == wanted.second;
  };
  return std::ranges::all_of(match_labels, is_there) &&
         std::ranges::all_of(match_expressions, [&labels](const LabelRequirement& requirement) {
           return planner::Holds(requirement, labels);
         });
}

LabelSelector ReadLabelSelector(Fields& fields) {
  LabelSelector selector{.match_labels = ReadMatchLabels(fields), .match_expressions = {}};
  fields.Objects("matchExpressions", kMaxRequirements, [&](Fields& requirement) {
    selector.match_expressions.push_back(ReadLabelRequirement(requirement));
  });
  return selector;
}

}  // namespace pliant::api
