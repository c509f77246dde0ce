#include "operator/controller/objects/placeholder_pod.h"

#include <nlohmann/json.hpp>
#include <span>
#include <utility>

#include "base/crc32c.h"
#include "base/format.h"
#include "operator/controller/model/names.h"

namespace pliant::controller {
namespace {

using nlohmann::json;

json TolerationsOf(const planner::PodNeeds& needs) {
  json list = json::array();
  for (const planner::Toleration& toleration : needs.tolerations) {
    json item = {{"operator", toleration.exists ? "Exists" : "Equal"}};
    if (!toleration.key.empty()) item["key"] = toleration.key;
    if (!toleration.exists) item["value"] = toleration.value;
    if (!toleration.effect.empty()) item["effect"] = toleration.effect;
    list.push_back(std::move(item));
  }
  return list;
}

json TermsOf(const planner::PodNeeds& needs) {
  json terms = json::array();
  for (const NodeTerm& term : needs.node_affinity) {
    json expressions = json::array();
    for (const planner::NodeRequirement& requirement : term) {
      json item = {{"key", requirement.key}, {"operator", ToString(requirement.op)}};
      if (!requirement.values.empty()) item["values"] = requirement.values;
      expressions.push_back(std::move(item));
    }
    terms.push_back({{"matchExpressions", std::move(expressions)}});
  }
  return terms;
}

}  // namespace

bool IsPlaceholder(const api::Pod& pod, const std::string& operator_ns) {
  return pod.meta.name_space == operator_ns &&
         pod.meta.labels.contains(std::string(kLabelNodesFor));
}

std::string HashOfNeeds(const RequestedNodes& nodes) {
  const std::string text = PlaceholderSpec(nodes, {}).dump();
  return Format("{:08x}", Crc32c(std::as_bytes(std::span(text))));
}

std::string PlaceholderName(const std::string& job_uid, int number) {
  return Format("pliant-nodes-{}-{}", job_uid, number);
}

json PlaceholderSpec(const RequestedNodes& nodes, const PlaceholderDefaults& defaults) {
  const planner::PodNeeds& needs = nodes.needs;
  const std::string& gpu_resource =
      nodes.gpu_resource.empty() ? defaults.gpu_resource : nodes.gpu_resource;
  const planner::Resources& resources = needs.resources;
  const std::string gpus = std::to_string(resources.gpus);
  json requests = {{gpu_resource, gpus}};
  if (resources.cpu_millis > 0) requests["cpu"] = Format("{}m", resources.cpu_millis);
  if (resources.memory_bytes > 0) requests["memory"] = std::to_string(resources.memory_bytes);
  json spec = {
      {"containers",
       json::array(
           {{{"name", "placeholder"},
             {"image", defaults.image},
             {"command", {"/usr/bin/sleep", "infinity"}},
             {"resources", {{"requests", std::move(requests)}, {"limits", {{gpu_resource, gpus}}}}},
             {"securityContext",
              {{"allowPrivilegeEscalation", false},
               {"readOnlyRootFilesystem", true},
               {"capabilities", {{"drop", {"ALL"}}}}}}}})},
      {"securityContext",
       {{"runAsNonRoot", true}, {"seccompProfile", {{"type", "RuntimeDefault"}}}}},
      {"automountServiceAccountToken", false},
      {"enableServiceLinks", false},
      {"terminationGracePeriodSeconds", 0},
  };
  if (!needs.tolerations.empty()) spec["tolerations"] = TolerationsOf(needs);
  if (!needs.node_selector.empty()) spec["nodeSelector"] = needs.node_selector;
  if (!needs.node_affinity.empty()) {
    spec["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
        ["nodeSelectorTerms"] = TermsOf(needs);
  }
  if (!defaults.priority_class.empty()) spec["priorityClassName"] = defaults.priority_class;
  for (const std::string& secret : defaults.pull_secrets) {
    spec["imagePullSecrets"].push_back({{"name", secret}});
  }
  return spec;
}

json PlaceholderMetadata(const RequestedNodes& nodes, const PlaceholderDefaults& defaults) {
  json metadata = {
      {"namespace", defaults.ns},
      {"labels",
       {{kLabelManagedBy, kManagedBy},
        {kLabelNodesFor, nodes.job.uid},
        {kLabelNeeds, HashOfNeeds(nodes)}}},
      {"annotations",
       {{"pliant.dev/nodes-for-job", ToString(nodes.job)},
        {"cluster-autoscaler.kubernetes.io/safe-to-evict", "true"}}},
  };
  if (!defaults.owner_uid.empty()) {
    metadata["ownerReferences"] = json::array({{{"apiVersion", "v1"},
                                                {"kind", "Pod"},
                                                {"name", defaults.owner_name},
                                                {"uid", defaults.owner_uid},
                                                {"controller", true}}});
  }
  return metadata;
}

json PlaceholderPod(const RequestedNodes& nodes, int number, const PlaceholderDefaults& defaults) {
  json metadata = PlaceholderMetadata(nodes, defaults);
  metadata["name"] = PlaceholderName(nodes.job.uid, number);
  return {{"apiVersion", "v1"},
          {"kind", "Pod"},
          {"metadata", std::move(metadata)},
          {"spec", PlaceholderSpec(nodes, defaults)}};
}

}  // namespace pliant::controller
