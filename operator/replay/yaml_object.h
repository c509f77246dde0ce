#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

#include "base/result.h"

namespace pliant::replay {

// The first object of the given kind in a YAML text, as kubectl would send it. kInvalid names the
// line, or says that there is none.
Result<nlohmann::json> ObjectOfKind(const std::string& yaml, std::string_view kind);

}  // namespace pliant::replay
