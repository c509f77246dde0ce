#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string_view>

namespace pliant::kube {

// JSON of the API server, without the history of objects' fields (metadata.managedFields): it is
// often longer than the rest, and nobody here reads it. Discarded if the text is no JSON.
nlohmann::json ParseWithoutHistory(std::string_view text);

}  // namespace pliant::kube
