#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "base/result.h"

// An administrator's additions to the pods of coordinators: a part of a PodTemplateSpec, as JSON
// (the chart's coordinator.podTemplate).
namespace pliant::controller {

// kInvalid, with the field named, if it sets what only the operator may set: how the operator finds
// a coordinator, and how the two communicate.
Status CheckCoordinatorTemplate(const std::string& text);

// Merges objects, where the administrator's value wins, and appends to lists. `text` was checked;
// it may be empty.
void AddCoordinatorTemplate(const std::string& text, nlohmann::json& pod);

}  // namespace pliant::controller
