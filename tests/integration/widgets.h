#pragma once

#include <nlohmann/json.hpp>

#include "operator/kube/object.h"

namespace pliant::kube {

// A custom kind for tests, with status and scale subresources.
inline constexpr ResourceType kWidgets{"test.pliant.dev", "v1", "widgets", "Widget"};

inline nlohmann::json WidgetDefinition() {
  return nlohmann::json::parse(R"({
    "metadata": {"name": "widgets.test.pliant.dev"},
    "spec": {
      "group": "test.pliant.dev",
      "scope": "Namespaced",
      "names": {"plural": "widgets", "singular": "widget", "kind": "Widget"},
      "versions": [{
        "name": "v1", "served": true, "storage": true,
        "subresources": {
          "status": {},
          "scale": {"specReplicasPath": ".spec.size", "statusReplicasPath": ".status.size"}
        },
        "schema": {"openAPIV3Schema": {
          "type": "object",
          "properties": {
            "spec": {
              "type": "object",
              "properties": {"size": {"type": "integer", "minimum": 0, "maximum": 10}}
            },
            "status": {"type": "object", "properties": {"size": {"type": "integer"}}}
          }
        }}
      }]
    }
  })");
}

}  // namespace pliant::kube
