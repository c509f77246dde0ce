#include "operator/api/node.h"

#include <nlohmann/json.hpp>

#include "operator/api/fields.h"
#include "operator/api/resources.h"

namespace pliant::api {

Result<Node> DecodeNode(const nlohmann::json& object, const std::string& gpu_resource) {
  Node node;
  ASSIGN_OR_RETURN(node.meta, DecodeMeta(object, /*label_prefix=*/""));
  Fields root(object);
  root.Object("spec", [&](Fields& spec) {
    node.unschedulable = spec.Bool("unschedulable");
    spec.Objects("taints", 1024, [&](Fields& taint) {
      node.taints.push_back({.key = taint.String("key"),
                             .value = taint.String("value"),
                             .effect = taint.String("effect")});
    });
  });
  root.Object("status", [&](Fields& status) {
    node.allocatable = ReadResources(status, "allocatable", gpu_resource);
    status.Objects("conditions", 1024, [&](Fields& condition) {
      if (condition.String("type") == "Ready") node.ready = condition.String("status") == "True";
    });
  });
  if (root.error()) return std::unexpected(*root.error());
  return node;
}

}  // namespace pliant::api
