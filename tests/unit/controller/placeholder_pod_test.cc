#include "operator/controller/objects/placeholder_pod.h"

#include <nlohmann/json.hpp>

#include <gtest/gtest.h>

namespace pliant::controller {
namespace {

using nlohmann::json;
using planner::NodeOperator;

RequestedNodes Nodes() {
  return {.job = {.name_space = "team-a", .name = "digits", .uid = "1a2b"},
          .learners = 2,
          .needs = {.resources = {.gpus = 4, .cpu_millis = 1500, .memory_bytes = 1 << 30},
                    .tolerations = {{.key = "gpu", .effect = "NoSchedule", .exists = true},
                                    {.key = "team", .value = "a"}},
                    .node_selector = {{"kind", "a100"}},
                    .node_affinity = {{{"zone", NodeOperator::kIn, {"a", "b"}},
                                       {"old", NodeOperator::kDoesNotExist, {}}}}}};
}

TEST(PlaceholderPod, NeedsTheNodesOfALearnerAndDoesNothing) {
  EXPECT_EQ(PlaceholderPod(Nodes(), 3,
                           {.ns = "pliant-system",
                            .owner_name = "operator-1",
                            .owner_uid = "uid-1",
                            .image = "pliant:1",
                            .pull_secrets = {"key"},
                            .priority_class = "pliant-placeholder"}),
            json::parse(R"({
    "apiVersion": "v1", "kind": "Pod",
    "metadata": {
      "name": "pliant-nodes-1a2b-3", "namespace": "pliant-system",
      "labels": {"app.kubernetes.io/managed-by": "pliant", "pliant.dev/nodes-for": "1a2b",
                 "pliant.dev/nodes-with-needs": ")" +
                        HashOfNeeds(Nodes()) + R"("},
      "annotations": {"pliant.dev/nodes-for-job": "team-a/digits",
                      "cluster-autoscaler.kubernetes.io/safe-to-evict": "true"},
      "ownerReferences": [{"apiVersion": "v1", "kind": "Pod", "name": "operator-1", "uid": "uid-1", "controller": true}]},
    "spec": {
      "containers": [{
        "name": "placeholder", "image": "pliant:1", "command": ["/usr/bin/sleep", "infinity"],
        "resources": {"requests": {"nvidia.com/gpu": "4", "cpu": "1500m", "memory": "1073741824"},
                      "limits": {"nvidia.com/gpu": "4"}},
        "securityContext": {"allowPrivilegeEscalation": false, "readOnlyRootFilesystem": true,
                            "capabilities": {"drop": ["ALL"]}}}],
      "securityContext": {"runAsNonRoot": true, "seccompProfile": {"type": "RuntimeDefault"}},
      "automountServiceAccountToken": false, "enableServiceLinks": false,
      "terminationGracePeriodSeconds": 0, "priorityClassName": "pliant-placeholder",
      "imagePullSecrets": [{"name": "key"}],
      "tolerations": [{"key": "gpu", "operator": "Exists", "effect": "NoSchedule"},
                      {"key": "team", "operator": "Equal", "value": "a"}],
      "nodeSelector": {"kind": "a100"},
      "affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {
        "nodeSelectorTerms": [{"matchExpressions": [
          {"key": "zone", "operator": "In", "values": ["a", "b"]},
          {"key": "old", "operator": "DoesNotExist"}]}]}}}}})"));
}

TEST(PlaceholderPod, AsksForTheResourceOfThePool) {
  RequestedNodes nodes = Nodes();
  nodes.gpu_resource = "nvidia.com/mig-1g.10gb";
  EXPECT_EQ(PlaceholderSpec(nodes, {}).at("/containers/0/resources/limits"_json_pointer),
            json::parse(R"({"nvidia.com/mig-1g.10gb": "4"})"));
}

TEST(PlaceholderPod, OtherNeedsHaveAnotherHash) {
  RequestedNodes other = Nodes();
  other.learners = 7;
  EXPECT_EQ(HashOfNeeds(other), HashOfNeeds(Nodes()));
  other.needs.node_selector["nvidia.com/gpu.product"] = "L4";
  EXPECT_NE(HashOfNeeds(other), HashOfNeeds(Nodes()));
  other = Nodes();
  other.gpu_resource = "nvidia.com/mig-1g.10gb";
  EXPECT_NE(HashOfNeeds(other), HashOfNeeds(Nodes()));
}

// A pod of a tenant with the same label takes room like any other.
TEST(PlaceholderPod, IsOneOnlyInTheNamespaceOfTheOperator) {
  api::Pod pod;
  pod.meta.name_space = "pliant-system";
  EXPECT_FALSE(IsPlaceholder(pod, "pliant-system"));
  pod.meta.labels["pliant.dev/nodes-for"] = "1a2b";
  EXPECT_TRUE(IsPlaceholder(pod, "pliant-system"));
  pod.meta.name_space = "team-a";
  EXPECT_FALSE(IsPlaceholder(pod, "pliant-system"));
}

}  // namespace
}  // namespace pliant::controller
