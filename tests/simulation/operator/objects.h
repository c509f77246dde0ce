#pragma once

#include <string>

#include "tests/kube/memory_api_server.h"

namespace pliant::operator_sim {

inline constexpr const char* kPods = "/api/v1/pods";
inline constexpr const char* kNamespace = "team-a";  // of all jobs

inline std::string UidOf(const nlohmann::json& object) { return object.at("metadata").at("uid"); }

}  // namespace pliant::operator_sim
