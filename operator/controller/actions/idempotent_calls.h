#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "operator/kube/client.h"

// Writes that succeed, too, if they have been done before: the stores do not show it at once.
namespace pliant::controller {

// `uid`: of the object that is meant, "": any.
kube::KubeStatus DeleteIfPresent(kube::KubeClient& client, const kube::ResourceType& type,
                                 const kube::NamespacedName& key, const std::string& uid);
kube::KubeStatus CreateIfAbsent(kube::KubeClient& client, const kube::ResourceType& type,
                                const nlohmann::json& object);

// Whether the server refuses the object; it may still take others.
bool ConcernsOneObject(const kube::KubeError& error);

}  // namespace pliant::controller
