#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string_view>

namespace pliant::kube {

// Parses JSON of the API server without metadata.managedFields, which is often longer than the rest
// and not used here. A discarded value if the text is not JSON.
nlohmann::json ParseWithoutHistory(std::string_view text);

}  // namespace pliant::kube
