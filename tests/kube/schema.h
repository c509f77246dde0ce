#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>

namespace pliant::kube {

struct WrongField {
  std::string path;  // "spec.size"
  std::string why;
};

// What an API server makes of a custom object by the structural schema of its definition: drops the
// fields that the schema does not name, and fills in defaults.
void PruneAndDefault(const nlohmann::json& schema, nlohmann::json& value);

// The first field that is not as the schema says, except for those that are as they were `before`
// (null: nothing was): those stay as they were stored, whatever the schema says since. Of patterns
// and of rules in CEL nothing is known here.
std::optional<WrongField> FindWrongField(const nlohmann::json& schema, const nlohmann::json& value,
                                         const nlohmann::json* before,
                                         const std::string& path = "");

}  // namespace pliant::kube
