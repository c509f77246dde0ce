#include "operator/controller/objects/coordinator_template.h"

#include <nlohmann/json.hpp>

#include <gtest/gtest.h>

#include "operator/controller/objects/coordinator_objects.h"
#include "tests/unit/controller/job_fixture.h"

namespace pliant::controller {
namespace {

using nlohmann::json;

json PodOf(const std::string& pod_template, PodDefaults defaults = {}) {
  if (!pod_template.empty()) {
    const Status checked = CheckCoordinatorTemplate(pod_template);
    EXPECT_TRUE(checked) << checked.error();
  }
  defaults.coordinator_template = pod_template;
  return CoordinatorPod(NewJob(), 3, "pliant:1", defaults);
}

// Accepted by a cluster that assigns user ids per namespace, and under the restricted Pod Security
// Standard.
TEST(CoordinatorTemplate, WithoutOneThePodIsRestrictedAndOfNoUser) {
  const json pod = PodOf("");
  EXPECT_EQ(pod.at("/spec/securityContext"_json_pointer),
            json::parse(R"({"runAsNonRoot": true, "seccompProfile": {"type": "RuntimeDefault"}})"));
  EXPECT_EQ(pod.at("/spec/containers/0/securityContext"_json_pointer),
            json::parse(R"({"allowPrivilegeEscalation": false, "readOnlyRootFilesystem": true,
                            "capabilities": {"drop": ["ALL"]}})"));
  EXPECT_EQ(pod.at("/spec/volumes/0/secret/defaultMode"_json_pointer), 0444)
      << "readable by any user";
  EXPECT_EQ(PodOf("{}"), pod);
  EXPECT_EQ(PodOf(R"({"metadata": {}, "spec": {"containers": []}})"), pod);
}

TEST(CoordinatorTemplate, IsMergedIntoThePod) {
  const json pod = PodOf(R"({
      "metadata": {"labels": {"sidecar.istio.io/inject": "false"},
                   "annotations": {"note": "here", "prometheus.io/scrape": "false"}},
      "spec": {
        "nodeSelector": {"pool": "system"}, "affinity": {"nodeAffinity": {}},
        "tolerations": [{"key": "pool", "operator": "Exists"},
                        {"key": "node.kubernetes.io/unreachable", "operator": "Exists",
                         "effect": "NoExecute", "tolerationSeconds": 5}],
        "securityContext": {"runAsUser": 1000, "seccompProfile": {"type": "Unconfined"}},
        "priorityClassName": "services", "schedulerName": "other", "runtimeClassName": "gvisor",
        "imagePullSecrets": [{"name": "key"}, {"name": "another"}],
        "topologySpreadConstraints": [{"maxSkew": 1}],
        "containers": [{"name": "coordinator", "imagePullPolicy": "Always",
                        "env": [{"name": "TZ", "value": "UTC"}],
                        "resources": {"requests": {"cpu": "50m"}, "limits": {"cpu": "1"}},
                        "securityContext": {"readOnlyRootFilesystem": false}}]}})",
                         {.priority_class = "learners",
                          .coordinator_pull_secrets = {"key"},
                          .scrape_annotations = true});
  const json plain = PodOf("", {.priority_class = "learners",
                                .coordinator_pull_secrets = {"key"},
                                .scrape_annotations = true});
  json expected = plain;
  expected["metadata"]["labels"]["sidecar.istio.io/inject"] = "false";
  expected["metadata"]["annotations"]["note"] = "here";
  expected["metadata"]["annotations"]["prometheus.io/scrape"] = "false";
  json& spec = expected["spec"];
  spec["nodeSelector"] = {{"pool", "system"}};
  spec["affinity"] = json::parse(R"({"nodeAffinity": {}})");
  spec["tolerations"] = json::parse(R"([
      {"key": "pool", "operator": "Exists"},
      {"key": "node.kubernetes.io/unreachable", "operator": "Exists", "effect": "NoExecute",
       "tolerationSeconds": 5},
      {"key": "node.kubernetes.io/not-ready", "operator": "Exists", "effect": "NoExecute",
       "tolerationSeconds": 30}])");
  spec["securityContext"] = json::parse(
      R"({"runAsNonRoot": true, "runAsUser": 1000, "seccompProfile": {"type": "Unconfined"}})");
  spec["priorityClassName"] = "services";
  spec["schedulerName"] = "other";
  spec["runtimeClassName"] = "gvisor";
  spec["imagePullSecrets"] = json::parse(R"([{"name": "key"}, {"name": "another"}])");
  spec["topologySpreadConstraints"] = json::parse(R"([{"maxSkew": 1}])");
  json& container = spec["containers"][0];
  container["imagePullPolicy"] = "Always";
  container["env"].push_back({{"name", "TZ"}, {"value", "UTC"}});
  container["resources"] = json::parse(
      R"({"requests": {"cpu": "50m", "memory": "64Mi"}, "limits": {"cpu": "1", "memory": "256Mi"}})");
  container["securityContext"]["readOnlyRootFilesystem"] = false;
  EXPECT_EQ(pod, expected) << json::diff(expected, pod);
}

TEST(CoordinatorTemplate, TheMostSpecificPriorityClassCounts) {
  const auto of = [](const json& pod) { return pod.at("spec").value("priorityClassName", ""); };
  const std::string theirs = R"({"spec": {"priorityClassName": "theirs"}})";
  EXPECT_EQ(of(PodOf("")), "");
  EXPECT_EQ(of(PodOf("", {.priority_class = "learners"})), "learners");
  const PodDefaults both{.priority_class = "learners", .coordinator_priority_class = "ours"};
  EXPECT_EQ(of(PodOf("", both)), "ours");
  EXPECT_EQ(of(PodOf(theirs, both)), "theirs");
}

TEST(CoordinatorTemplate, RefusesAndNamesFieldsOfTheOperator) {
  const struct {
    const char* text;
    const char* error;
  } kCases[] = {
      {"{", "it is not a JSON object"},
      {"[]", "it is not a JSON object"},
      {R"({"kind": "Pod"})", "kind cannot be set, only metadata, spec"},
      {R"({"spec": []})", "spec is not an object"},
      {R"({"metadata": {"name": "x"}})", "metadata.name cannot be set, only annotations, labels"},
      {R"({"metadata": {"ownerReferences": []}})",
       "metadata.ownerReferences cannot be set, only annotations, labels"},
      {R"({"metadata": {"labels": {"pliant.dev/role": "learner"}}})",
       "metadata.labels[pliant.dev/role] is reserved for the operator"},
      {R"({"metadata": {"labels": {"app.kubernetes.io/managed-by": "me"}}})",
       "metadata.labels[app.kubernetes.io/managed-by] is reserved for the operator"},
      {R"({"metadata": {"labels": {"inject": false}}})", "metadata.labels[inject] is not a string"},
      {R"({"metadata": {"annotations": {"note": 1}}})",
       "metadata.annotations[note] is not a string"},
      {R"({"spec": {"nodeSelector": {"pool": null}}})", "spec.nodeSelector[pool] is not a string"},
      {R"({"spec": {"tolerations": {}}})", "spec.tolerations is not a list"},
      {R"({"spec": {"tolerations": [{"key": 1}]}})",
       "spec.tolerations has an item whose key is not a string"},
      {R"({"spec": {"priorityClassName": 1}})", "spec.priorityClassName is not a string"},
      {R"({"spec": {"imagePullSecrets": ["key"]}})",
       "spec.imagePullSecrets has an item whose name is not a string"},
      {R"({"spec": {"containers": [{"name": "sidecar"}]}})",
       "spec.containers can have only one container, named coordinator"},
      {R"({"spec": {"containers": [{"name": "coordinator"}, {"name": "sidecar"}]}})",
       "spec.containers can have only one container, named coordinator"},
      {R"({"spec": {"containers": [{"resources": {}}]}})",
       "spec.containers has an item whose name is not a string"},
      {R"({"spec": {"containers": [{"name": "coordinator", "command": ["sh"]}]}})",
       "spec.containers[0].command cannot be set, only env, imagePullPolicy, name, resources, "
       "securityContext"},
      {R"({"spec": {"containers": [{"name": "coordinator", "env": [{"name": "PLIANT_TERM"}]}]}})",
       "spec.containers[0].env[PLIANT_TERM] is reserved for the operator"},
      {R"({"spec": {"containers": [{"name": "coordinator", "env": ["x"]}]}})",
       "spec.containers[0].env has an item whose name is not a string"},
  };
  for (const auto& c : kCases) {
    const Status checked = CheckCoordinatorTemplate(c.text);
    ASSERT_FALSE(checked) << c.text;
    EXPECT_EQ(checked.error().message, c.error);
  }
  for (const char* field : {"automountServiceAccountToken", "volumes", "restartPolicy",
                            "hostNetwork", "serviceAccountName", "initContainers", "toleration"}) {
    json pod_template;
    pod_template["spec"][field] = true;
    const Status checked = CheckCoordinatorTemplate(pod_template.dump());
    ASSERT_FALSE(checked) << field;
    EXPECT_TRUE(checked.error().message.starts_with(std::string("spec.") + field +
                                                    " cannot be set, only affinity"))
        << checked.error();
  }
}

}  // namespace
}  // namespace pliant::controller
