#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

namespace pliant::controller {

// The newest and most telling sentence on why a pod's volumes cannot be mounted, or why it gets no
// network, among the events (events.k8s.io/v1) of that pod; "" if there is none.
std::string MountCauseIn(const std::vector<nlohmann::json>& events);

}  // namespace pliant::controller
