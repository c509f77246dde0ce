#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "base/result.h"

namespace pliant::kube {

// Reads the objects of a YAML file, as kubectl would send them. kInvalid names the file and the
// line.
Result<std::vector<nlohmann::json>> LoadYamlObjects(const std::string& file);
Result<std::vector<nlohmann::json>> ParseYamlObjects(const std::string& text);
// The definitions of Pliant's own kinds (crds/), by name.
Result<std::vector<nlohmann::json>> LoadDefinitions();

}  // namespace pliant::kube
