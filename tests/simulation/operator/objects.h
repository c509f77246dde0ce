#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "operator/kube/object.h"

namespace pliant::operator_sim {

inline constexpr const char* kPods = "/api/v1/pods";
inline constexpr const char* kProvisioningRequests =
    "/apis/autoscaling.x-k8s.io/v1/provisioningrequests";
inline constexpr const char* kAllJobs = "/apis/pliant.dev/v1alpha1/elastictrainingjobs";
// A job has its plain name in the first namespace, and "NAMESPACE/NAME" in the second. Other
// namespaces have no jobs, whatever the labels of their pods say.
inline constexpr const char* kNamespace = "team-a";
inline constexpr const char* kSecondNamespace = "team-b";

std::string JobNamed(const kube::NamespacedName& key);
kube::NamespacedName KeyOf(const std::string& job);
std::string PathOf(const std::string& job);
// The name of the job that an object is, or to which it belongs by its labels.
std::string JobOf(const nlohmann::json& object);
// Whether the object is in a namespace of jobs: elsewhere, an object that looks like a job's pod is
// forged.
bool IsAmongJobs(const nlohmann::json& object);

std::string UidOf(const nlohmann::json& object);

}  // namespace pliant::operator_sim
