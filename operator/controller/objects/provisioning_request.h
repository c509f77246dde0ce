#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "operator/controller/objects/placeholder_pod.h"

// ProvisioningRequests of cluster-autoscaler (autoscaling.x-k8s.io/v1): it adds all nodes for one,
// or none. cluster-autoscaler 1.31 and newer know this version and class.
namespace pliant::controller {

// Its name follows from what is requested: the spec of a ProvisioningRequest is immutable.
std::string ProvisioningRequestName(const RequestedNodes& nodes);

// The request, and the template of the pods that it is for, of the same name and namespace.
nlohmann::json ProvisioningRequest(const RequestedNodes& nodes,
                                   const PlaceholderDefaults& defaults);
nlohmann::json ProvisioningTemplate(const RequestedNodes& nodes,
                                    const PlaceholderDefaults& defaults);

// The state of a ProvisioningRequest, as far as the operator reads it.
struct ProvisioningState {
  std::string name;
  std::string uid;
  std::string job_uid;
  api::WallTime created;
  // Why it has ended without success, or what it has provided is no longer kept: "Failed: no
  // quota";
  // "": it has not.
  std::string over;
  bool operator==(const ProvisioningState&) const = default;
};
Result<ProvisioningState> DecodeProvisioningRequest(const nlohmann::json& object);

}  // namespace pliant::controller
