#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "operator/kube/object.h"

namespace pliant::operator_sim {

inline constexpr const char* kPods = "/api/v1/pods";
inline constexpr const char* kAllJobs = "/apis/pliant.dev/v1alpha1/elastictrainingjobs";
// A job goes by its name in the first namespace, and by "NAMESPACE/NAME" in the second. Others have
// no jobs, whatever their pods say.
inline constexpr const char* kNamespace = "team-a";
inline constexpr const char* kSecondNamespace = "team-b";

std::string JobNamed(const kube::NamespacedName& key);
kube::NamespacedName KeyOf(const std::string& job);
std::string PathOf(const std::string& job);
// The job that an object is, or belongs to by its labels.
std::string JobOf(const nlohmann::json& object);
// Whether it lies where jobs are: what looks like a job's pod elsewhere is somebody's forgery.
bool IsAmongJobs(const nlohmann::json& object);

std::string UidOf(const nlohmann::json& object);

}  // namespace pliant::operator_sim
