#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "operator/api/pod.h"
#include "operator/controller/model/requested_nodes.h"

// Pods that do nothing. Node autoscalers add nodes for pods that no node takes, so a placeholder of
// the needs of a learner makes one add a node for it.
namespace pliant::controller {

struct PlaceholderDefaults {
  std::string ns;  // the operator's
  // The operator's pod, with which they are deleted: an operator that is gone leaves none. "": it
  // does not run in a pod.
  std::string owner_name;
  std::string owner_uid;
  std::string image;  // has /usr/bin/sleep
  std::vector<std::string> pull_secrets;
  // Its value is negative, so that every other pod may take their place. "": none
  std::string priority_class;
  std::string gpu_resource = "nvidia.com/gpu";
};

// By which job requests it, and of which needs a placeholder is.
inline constexpr std::string_view kLabelNodesFor = "pliant.dev/nodes-for";      // the job's uid
inline constexpr std::string_view kLabelNeeds = "pliant.dev/nodes-with-needs";  // a hash

// Whether it is one. Only the operator may create pods with labels of pliant.dev in `operator_ns`.
bool IsPlaceholder(const api::Pod& pod, const std::string& operator_ns);

// Changes with the needs of one learner.
std::string HashOfNeeds(const RequestedNodes& nodes);
// Names the placeholder for learner `number` of the job.
std::string PlaceholderName(const std::string& job_uid, int number);

// The metadata of everything that is made for the nodes, without a name.
nlohmann::json PlaceholderMetadata(const RequestedNodes& nodes,
                                   const PlaceholderDefaults& defaults);
// The spec of a pod that needs the same node as a learner does.
nlohmann::json PlaceholderSpec(const RequestedNodes& nodes, const PlaceholderDefaults& defaults);
nlohmann::json PlaceholderPod(const RequestedNodes& nodes, int number,
                              const PlaceholderDefaults& defaults);

}  // namespace pliant::controller
