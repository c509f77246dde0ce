#include "operator/controller/objects/provisioning_request.h"

#include <nlohmann/json.hpp>
#include <utility>

#include "base/format.h"
#include "operator/api/condition.h"
#include "operator/api/fields.h"
#include "operator/controller/model/names.h"

namespace pliant::controller {
namespace {

using nlohmann::json;

constexpr const char* kClass = "best-effort-atomic-scale-up.autoscaling.x-k8s.io";

json Metadata(const RequestedNodes& nodes, const PlaceholderDefaults& defaults) {
  json metadata = PlaceholderMetadata(nodes, defaults);
  metadata["name"] = ProvisioningRequestName(nodes);
  return metadata;
}

// Condition types by which cluster-autoscaler says that it does nothing more for a request.
bool IsOver(const api::Condition& condition) {
  return condition.status == api::ConditionStatus::kTrue &&
         (condition.type == "Failed" || condition.type == "BookingExpired" ||
          condition.type == "CapacityRevoked");
}

}  // namespace

std::string ProvisioningRequestName(const RequestedNodes& nodes) {
  return Format("pliant-nodes-{}-{}-{}", nodes.job.uid, nodes.learners, HashOfNeeds(nodes));
}

json ProvisioningRequest(const RequestedNodes& nodes, const PlaceholderDefaults& defaults) {
  return {{"apiVersion", "autoscaling.x-k8s.io/v1"},
          {"kind", "ProvisioningRequest"},
          {"metadata", Metadata(nodes, defaults)},
          {"spec",
           {{"provisioningClassName", kClass},
            {"podSets",
             json::array({{{"count", nodes.learners},
                           {"podTemplateRef", {{"name", ProvisioningRequestName(nodes)}}}}})}}}};
}

json ProvisioningTemplate(const RequestedNodes& nodes, const PlaceholderDefaults& defaults) {
  return {{"apiVersion", "v1"},
          {"kind", "PodTemplate"},
          {"metadata", Metadata(nodes, defaults)},
          {"template", {{"spec", PlaceholderSpec(nodes, defaults)}}}};
}

Result<ProvisioningState> DecodeProvisioningRequest(const json& object) {
  api::ObjectMeta meta;
  ASSIGN_OR_RETURN(meta, api::DecodeMeta(object, "pliant.dev/"));
  ProvisioningState state{.name = meta.name, .uid = meta.uid, .created = meta.created};
  const auto job = meta.labels.find(std::string(kLabelNodesFor));
  if (job != meta.labels.end()) state.job_uid = job->second;
  api::Fields root(object);
  root.Object("status", [&](api::Fields& status) {
    for (const api::Condition& condition : api::ReadConditions(status)) {
      if (IsOver(condition)) state.over = Format("{}: {}", condition.type, condition.message);
    }
  });
  return state;
}

}  // namespace pliant::controller
