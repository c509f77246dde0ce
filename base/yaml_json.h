#pragma once

#include <nlohmann/json_fwd.hpp>

#include "base/result.h"

namespace YAML {
class Node;
}  // namespace YAML

namespace pliant {

// A YAML value as kubectl would send it. kInvalid: nested deeper than kMaxJsonLevels, or too large
// to be honest.
Result<nlohmann::json> ToJson(const YAML::Node& node);

}  // namespace pliant
