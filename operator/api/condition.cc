#include "operator/api/condition.h"

#include <nlohmann/json.hpp>

namespace pliant::api {
namespace {

ConditionStatus ConditionStatusOf(std::string_view text) {
  if (text == "True") return ConditionStatus::kTrue;
  if (text == "False") return ConditionStatus::kFalse;
  return ConditionStatus::kUnknown;
}

}  // namespace

std::string_view ToString(ConditionStatus status) {
  switch (status) {
    case ConditionStatus::kFalse:
      return "False";
    case ConditionStatus::kTrue:
      return "True";
    case ConditionStatus::kUnknown:
      return "Unknown";
  }
  return "Unknown";
}

std::vector<Condition> ReadConditions(Fields& status) {
  std::vector<Condition> conditions;
  status.Objects("conditions", 64, [&](Fields& condition) {
    conditions.push_back(
        {.type = condition.String("type"),
         .status = ConditionStatusOf(condition.String("status")),
         .reason = condition.String("reason"),
         .message = condition.String("message"),
         .last_transition = condition.OptionalTime("lastTransitionTime").value_or(WallTime{}),
         .observed_generation = condition.Long("observedGeneration", 0, 0, kMaxCount)});
  });
  conditions.shrink_to_fit();  // thousands of jobs are kept in memory
  return conditions;
}

nlohmann::json EncodeConditions(const std::vector<Condition>& conditions) {
  nlohmann::json list = nlohmann::json::array();
  for (const Condition& condition : conditions) {
    list.push_back({{"type", condition.type},
                    {"status", ToString(condition.status)},
                    {"reason", condition.reason},
                    {"message", condition.message},
                    {"lastTransitionTime", FormatTime(condition.last_transition)},
                    {"observedGeneration", condition.observed_generation}});
  }
  return list;
}

}  // namespace pliant::api
