#pragma once

#include <nlohmann/json.hpp>

#include "operator/kube/client.h"

// Kubernetes kinds that only tests use.
namespace pliant::kube {

inline constexpr ResourceType kConfigMaps{"", "v1", "configmaps", "ConfigMap"};
inline constexpr ResourceType kCustomResourceDefinitions{
    "apiextensions.k8s.io", "v1", "customresourcedefinitions", "CustomResourceDefinition", false};

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
