#pragma once

#include <nlohmann/json.hpp>

#include "operator/kube/client.h"

// Kubernetes kinds that only tests use.
namespace pliant::kube {

inline constexpr ResourceType kConfigMaps{"", "v1", "configmaps", "ConfigMap"};
inline constexpr ResourceType kCustomResourceDefinitions{
    "apiextensions.k8s.io", "v1", "customresourcedefinitions", "CustomResourceDefinition", false};

// The fields of cluster-autoscaler's ProvisioningRequest that matter here, with their bounds.
inline nlohmann::json ProvisioningRequestDefinition() {
  return nlohmann::json::parse(R"({
    "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
    "metadata": {"name": "provisioningrequests.autoscaling.x-k8s.io",
                 "annotations": {"api-approved.kubernetes.io": "unapproved, for tests"}},
    "spec": {
      "group": "autoscaling.x-k8s.io", "scope": "Namespaced",
      "names": {"kind": "ProvisioningRequest", "listKind": "ProvisioningRequestList",
                "plural": "provisioningrequests", "singular": "provisioningrequest"},
      "versions": [{"name": "v1", "served": true, "storage": true, "subresources": {"status": {}},
        "schema": {"openAPIV3Schema": {"type": "object", "required": ["spec"], "properties": {
          "apiVersion": {"type": "string"}, "kind": {"type": "string"}, "metadata": {"type": "object"},
          "spec": {"type": "object", "required": ["podSets", "provisioningClassName"], "properties": {
            "provisioningClassName": {"type": "string", "maxLength": 253,
              "pattern": "^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$"},
            "podSets": {"type": "array", "minItems": 1, "maxItems": 32, "items": {
              "type": "object", "required": ["count", "podTemplateRef"], "properties": {
                "count": {"type": "integer", "format": "int32", "minimum": 1},
                "podTemplateRef": {"type": "object", "required": ["name"], "properties": {
                  "name": {"type": "string", "maxLength": 253,
                    "pattern": "^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$"}}}}}}}},
          "status": {"type": "object", "properties": {"conditions": {"type": "array", "items": {
            "type": "object", "required": ["lastTransitionTime", "message", "reason", "status", "type"],
            "properties": {
              "type": {"type": "string"}, "status": {"type": "string"}, "reason": {"type": "string"},
              "message": {"type": "string"},
              "lastTransitionTime": {"type": "string", "format": "date-time"}}}}}}}}}}]}})");
}

// Creates a definition, or updates the existing one.
inline KubeResult<nlohmann::json> PutDefinition(KubeClient& client,
                                                const nlohmann::json& definition) {
  while (true) {
    auto made = client.Create(kCustomResourceDefinitions, definition);
    if (made || made.error().code != ErrorCode::kAlreadyExists) return made;
    ASSIGN_OR_RETURN(nlohmann::json there,
                     client.Get(kCustomResourceDefinitions, MetaOf(definition).key));
    there["spec"] = definition.at("spec");
    auto put = client.Update(kCustomResourceDefinitions, there);
    // A conflict is retried: the server itself writes to the definition's status.
    if (put || put.error().code != ErrorCode::kConflict) return put;
  }
}

}  // namespace pliant::kube
