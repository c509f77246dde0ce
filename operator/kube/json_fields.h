#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

// Fields of objects that came from outside: what is missing or of another type reads as nothing.
namespace pliant::kube {

std::string StringAt(const nlohmann::json& object, const char* name);
// 0 also for a number that no int holds.
int IntAt(const nlohmann::json& object, const char* name);

}  // namespace pliant::kube
