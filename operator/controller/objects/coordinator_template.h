#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "base/result.h"

// What an administrator adds to the pods of coordinators: a part of a PodTemplateSpec, as JSON (the
// chart's coordinator.podTemplate).
namespace pliant::controller {

// kInvalid, with the field named, if it holds what is not an administrator's to say: what the
// operator finds a coordinator by, and how the two talk.
Status CheckCoordinatorTemplate(const std::string& text);

// Objects are merged, and theirs wins; lists are added to. `text` was checked; it may be empty.
void AddCoordinatorTemplate(const std::string& text, nlohmann::json& pod);

}  // namespace pliant::controller
