#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "operator/api/fields.h"
#include "operator/api/time.h"

namespace pliant::api {

enum class ConditionStatus { kFalse, kTrue, kUnknown };
std::string_view ToString(ConditionStatus status);

struct Condition {
  std::string type;
  ConditionStatus status = ConditionStatus::kUnknown;
  std::string reason;  // CamelCase, never empty
  std::string message;
  WallTime last_transition;
  std::int64_t observed_generation = 0;

  bool operator==(const Condition&) const = default;
};

// The field `conditions` of a status.
std::vector<Condition> ReadConditions(Fields& status);
nlohmann::json EncodeConditions(const std::vector<Condition>& conditions);

}  // namespace pliant::api
