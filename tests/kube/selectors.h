#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

namespace pliant::kube {

// Whether an object is chosen by a label selector ("a", "!a", "a=b", "a!=b", joined by commas). An
// empty selector chooses everything.
bool MatchesLabels(const nlohmann::json& object, const std::string& selector);
// The same by fields ("metadata.name=a", "spec.nodeName!=b").
bool MatchesFields(const nlohmann::json& object, const std::string& selector);

}  // namespace pliant::kube
