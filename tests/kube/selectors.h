#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

namespace pliant::kube {

// Whether a label selector ("a", "!a", "a=b", "a!=b", joined by commas) matches an object. An empty
// selector matches everything.
bool MatchesLabels(const nlohmann::json& object, const std::string& selector);
// The same for a field selector ("metadata.name=a", "spec.nodeName!=b").
bool MatchesFields(const nlohmann::json& object, const std::string& selector);

}  // namespace pliant::kube
