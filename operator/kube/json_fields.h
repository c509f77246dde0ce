#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

// Reads fields of untrusted objects: a field that is missing or has another type reads as empty or
// 0.
namespace pliant::kube {

std::string StringAt(const nlohmann::json& object, const char* name);
// Also 0 for a number that does not fit an int.
int IntAt(const nlohmann::json& object, const char* name);

}  // namespace pliant::kube
