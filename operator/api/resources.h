#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "operator/api/fields.h"
#include "operator/api/pod.h"

namespace pliant::api {

// Reads a resource list such as a node's `allocatable`, the field `name` of `fields`.
Resources ReadResources(Fields& fields, const char* name, const std::string& gpu_resource);

// What a pod of this spec takes from its node, as the scheduler counts: the sum of its containers,
// or its largest init container if that is more, plus the overhead of its runtime class.
Resources ReadPodRequests(Fields& spec, const std::string& gpu_resource);

// The same of a pod that exists, where a container that is resized in place counts as the larger of
// what it asks for and what the kubelet has set aside for it. The greatest numbers if that cannot
// be read.
Resources ReadTakenBy(const nlohmann::json& pod, const std::string& gpu_resource);

}  // namespace pliant::api
