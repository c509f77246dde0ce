#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>

namespace pliant::kube {

struct WrongField {
  std::string path;  // "spec.size"
  std::string why;
};

// Treats a custom object as an API server does, by the structural schema of its CRD: drops fields
// that the schema does not name, and fills in defaults.
void PruneAndDefault(const nlohmann::json& schema, nlohmann::json& value);

// Returns the first field that violates the schema. A field that is unchanged since `before` (null:
// there was no object) stays valid even if the schema has changed. Patterns and CEL rules are not
// checked.
std::optional<WrongField> FindWrongField(const nlohmann::json& schema, const nlohmann::json& value,
                                         const nlohmann::json* before,
                                         const std::string& path = "");

}  // namespace pliant::kube
