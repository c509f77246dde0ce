#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "operator/api/fields.h"
#include "operator/api/pod.h"

namespace pliant::api {

// Reads a resource list such as a node's `allocatable`, the field `name` of `fields`.
Resources ReadResources(Fields& fields, const char* name, const std::string& gpu_resource);

// The resources of a pod of this spec as the scheduler counts them: the sum of its containers, or
// its largest init container if that is more, plus the overhead of its runtime class.
Resources ReadPodRequests(Fields& spec, const std::string& gpu_resource);

// The same for an existing pod. A container that is resized in place counts as the larger of its
// request and the amount that the kubelet has allocated to it. The largest numbers if the pod
// cannot be read.
Resources ReadTakenBy(const nlohmann::json& pod, const std::string& gpu_resource);

}  // namespace pliant::api
