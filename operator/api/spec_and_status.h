#pragma once

#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "operator/api/fields.h"

namespace pliant::api {

// The problem of each half of a custom resource; "": it has none.
struct UnreadableHalves {
  std::string spec;
  std::string status;
};

// Reads both halves of a custom resource. Fields that are wrong get their defaults: another version
// of the operator may have written them, and the object must not be lost for that.
UnreadableHalves ReadSpecAndStatus(const nlohmann::json& object,
                                   const std::function<void(Fields&)>& read_spec,
                                   const std::function<void(Fields&)>& read_status);

}  // namespace pliant::api
