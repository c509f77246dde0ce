#pragma once

#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "base/result.h"
#include "operator/api/fields.h"

namespace pliant::api {

// Reads both halves of a custom resource. Returns which field of the spec is wrong, "" if none is:
// the object's status can say so. A status that is not understood is an error.
Result<std::string> ReadSpecAndStatus(const nlohmann::json& object,
                                      const std::function<void(Fields&)>& read_spec,
                                      const std::function<void(Fields&)>& read_status);

}  // namespace pliant::api
