#include "operator/controller/objects/learner_pod.h"

#include <nlohmann/json.hpp>

#include <gtest/gtest.h>

#include "base/format.h"
#include "tests/unit/controller/job_fixture.h"

namespace pliant::controller {
namespace {

using nlohmann::json;

const api::FrozenTraining kTraining{.global_batch_size = 256, .logical_shards = 32, .seed = 7};

json PodOf(const std::string& pod_template, PodDefaults defaults = {.priority_class = "low"}) {
  api::ElasticTrainingJob job = NewJob();
  SetTemplate(pod_template, job.spec);
  return LearnerPod(job, kTraining, /*term=*/3, /*number=*/4, {"gpu-1", "host-1"}, "10.0.0.7",
                    defaults);
}

json EnvOf(const json& pod) {
  json values = json::object();
  for (const json& variable : pod.at("spec").at("containers").at(0).at("env")) {
    EXPECT_FALSE(values.contains(variable.at("name"))) << "set twice: " << variable;
    values[variable.at("name").get<std::string>()] =
        variable.contains("value") ? variable.at("value") : variable.at("valueFrom");
  }
  return values;
}

TEST(LearnerPod, ASharedMemoryOfTheTemplateStays) {
  for (const char* const path : {"/dev/shm", "/dev/shm/"}) {
    const json pod = PodOf(Format(R"({{"spec": {{
        "volumes": [{{"name": "mine", "emptyDir": {{"medium": "Memory", "sizeLimit": "8Gi"}}}}],
        "containers": [{{"name": "learner", "volumeMounts": [
            {{"name": "mine", "mountPath": "{}"}}]}}]}}}})",
                                  path));
    const json& mounts = pod.at("/spec/containers/0/volumeMounts"_json_pointer);
    EXPECT_EQ(mounts.at(0).at("mountPath"), path);
    EXPECT_EQ(mounts.size(), 3U) << mounts;
  }
}

TEST(LearnerPod, HasWhatALearnerNeeds) {
  const json pod = PodOf(NewJob().spec.learner_template.json);
  EXPECT_EQ(pod.at("/metadata/name"_json_pointer), "digits-1a2b3-4");
  EXPECT_EQ(pod.at("/metadata/labels"_json_pointer), json::parse(R"({
      "app.kubernetes.io/managed-by": "pliant", "pliant.dev/job": "digits", "pliant.dev/job-uid": "1a2b3c4d-0000",
      "pliant.dev/role": "learner", "pliant.dev/learner": "4"})"));
  EXPECT_EQ(pod.at("/metadata/ownerReferences"_json_pointer), json::parse(R"([{
      "apiVersion": "pliant.dev/v1alpha1", "kind": "ElasticTrainingJob", "name": "digits", "uid": "1a2b3c4d-0000",
      "controller": true, "blockOwnerDeletion": true}])"));

  const json& spec = pod.at("spec");
  EXPECT_EQ(spec.at("restartPolicy"), "Never");
  EXPECT_EQ(spec.at("automountServiceAccountToken"), false);
  EXPECT_EQ(spec.at("terminationGracePeriodSeconds"), 75);
  EXPECT_EQ(spec.at("priorityClassName"), "low");
  EXPECT_EQ(spec.at("schedulingGates"), json::parse(R"([{"name": "pliant.dev/gpu"}])"));
  EXPECT_EQ(spec.at("/affinity/nodeAffinity/requiredDuringSchedulingIgnoredDuringExecution/"
                    "nodeSelectorTerms"_json_pointer),
            json::parse(R"([{"matchExpressions": [
                {"key": "kubernetes.io/hostname", "operator": "In", "values": ["host-1"]}]}])"));
  EXPECT_EQ(spec.at("volumes"), json::parse(R"([
      {"name": "pliant-checkpoints", "persistentVolumeClaim": {"claimName": "checkpoints"}},
      {"name": "pliant-learner", "secret": {"secretName": "digits-1a2b3-learner-3"}},
      {"name": "pliant-shared-memory", "emptyDir": {"medium": "Memory"}}])"));
  ASSERT_EQ(spec.at("tolerations").size(), 2u);
  EXPECT_EQ(spec.at("tolerations").at(0).at("tolerationSeconds"), 30);

  const json& container = spec.at("containers").at(0);
  EXPECT_EQ(container.at("image"), "example/train:1");
  EXPECT_EQ(container.at("/resources/limits"_json_pointer), json({{"nvidia.com/gpu", "1"}}));
  EXPECT_EQ(container.at("volumeMounts"), json::parse(R"([
      {"name": "pliant-checkpoints", "mountPath": "/checkpoints"},
      {"name": "pliant-learner", "mountPath": "/etc/pliant/learner", "readOnly": true},
      {"name": "pliant-shared-memory", "mountPath": "/dev/shm"}])"));

  const json env = EnvOf(pod);
  EXPECT_EQ(env.size(), 25u);
  EXPECT_EQ(env.at("PLIANT_TOKEN_FILE"), "/etc/pliant/learner/token");
  EXPECT_EQ(env.at("PLIANT_PEER_KEY_FILE"), "/etc/pliant/learner/peer-key");
  EXPECT_EQ(env.at("PLIANT_RANKS_PER_LEARNER"), "1");
  EXPECT_EQ(env.at("PLIANT_COORDINATOR"), "10.0.0.7:8443");
  EXPECT_EQ(env.at("PLIANT_TERM"), "3");
  EXPECT_EQ(env.at("PLIANT_JOB"), "team-a/digits");
  EXPECT_EQ(env.at("PLIANT_LOGICAL_SHARDS"), "32");
  EXPECT_EQ(env.at("PLIANT_SEED"), "7");
  EXPECT_EQ(env.at("PLIANT_MIN_LEARNERS"), "1");
  EXPECT_EQ(env.at("PLIANT_MAX_LEARNERS"), "8");
  EXPECT_EQ(env.at("PLIANT_GRACE_SECONDS"), "60");
  EXPECT_EQ(env.at("PLIANT_STEP_TIMEOUT_SECONDS"), "1800");
  EXPECT_EQ(env.at("PLIANT_METRICS_PORT"), "9090");
  EXPECT_EQ(container.at("ports"), json::parse(R"([
      {"name": "metrics", "containerPort": 9090, "protocol": "TCP"}])"));
  EXPECT_EQ(pod.at("/metadata/annotations"_json_pointer), json({{"pliant.dev/node", "gpu-1"}}));
  EXPECT_EQ(env.at("PLIANT_POD_IP"), json::parse(R"({"fieldRef": {"fieldPath": "status.podIP"}})"));
}

TEST(LearnerPod, AsksForTheResourceOfItsPool) {
  api::ElasticTrainingJob job = NewJob();
  job.spec.gpu_resource = "nvidia.com/mig-1g.10gb";
  SetTemplate(R"({"spec": {"containers": [{"name": "learner", "resources": {
                  "limits": {"nvidia.com/gpu": 1, "cpu": 2}, "requests": {"nvidia.com/gpu": 1}}}]}})",
              job.spec);
  const json pod = LearnerPod(job, kTraining, 1, 0, {"gpu-1", "host-1"}, "10.0.0.7", {});
  const json& limits = pod.at("/spec/containers/0/resources/limits"_json_pointer);
  EXPECT_EQ(limits.at("nvidia.com/mig-1g.10gb"), "1");
  EXPECT_EQ(limits.at("cpu"), 2);
  EXPECT_FALSE(limits.contains("nvidia.com/gpu"));
  EXPECT_FALSE(
      pod.at("/spec/containers/0/resources/requests"_json_pointer).contains("nvidia.com/gpu"));
}

TEST(LearnerPod, IsPinnedByNameToANodeWithoutHostname) {
  const json pod = LearnerPod(NewJob(), kTraining, 1, 0, {"gpu-1"}, "10.0.0.7", {});
  EXPECT_EQ(pod.at("/spec/affinity/nodeAffinity/requiredDuringSchedulingIgnoredDuringExecution/"
                   "nodeSelectorTerms"_json_pointer),
            json::parse(R"([{"matchFields": [
                {"key": "metadata.name", "operator": "In", "values": ["gpu-1"]}]}])"));
}

TEST(LearnerPod, HasTheCheckpointToResumeFrom) {
  EXPECT_FALSE(EnvOf(PodOf(NewJob().spec.learner_template.json)).contains("PLIANT_RESUME_FROM"));
  api::ElasticTrainingJob job = NewJob();
  job.spec.checkpoint.resume_from = "a-uid";
  const json pod = LearnerPod(job, kTraining, 3, 4, {"gpu-1", "host-1"}, "10.0.0.7", {});
  EXPECT_EQ(EnvOf(pod).at("PLIANT_RESUME_FROM"), "a-uid");
}

TEST(LearnerPod, UsesNcclIfTheAdministratorAndTheJobAllowIt) {
  for (const bool allowed : {false, true}) {
    for (const bool wanted : {false, true}) {
      api::ElasticTrainingJob job = NewJob();
      job.spec.exchange_over_nccl = wanted;
      const json pod = LearnerPod(job, kTraining, 3, 4, {"gpu-1", "host-1"}, "10.0.0.7",
                                  {.nccl_allowed = allowed});
      EXPECT_EQ(EnvOf(pod).at("PLIANT_EXCHANGE"), allowed && wanted ? "Auto" : "Frames");
    }
  }
}

TEST(LearnerPod, HasTheLimitOfItsBatchSize) {
  EXPECT_FALSE(EnvOf(PodOf(NewJob().spec.learner_template.json)).contains("PLIANT_BATCH_MODE"));
  api::FrozenTraining training = kTraining;
  training.max_batch_size = 4096;
  const json pod = LearnerPod(NewJob(), training, 3, 4, {"gpu-1", "host-1"}, "10.0.0.7", {});
  EXPECT_EQ(EnvOf(pod).at("PLIANT_BATCH_MODE"), "FromState");
  EXPECT_EQ(EnvOf(pod).at("PLIANT_MAX_BATCH_SIZE"), "4096");
}

TEST(LearnerPod, IsFoundByAPlainPrometheusWhereThatIsWanted) {
  const auto annotations_of = [](const std::string& template_json) {
    api::ElasticTrainingJob job = NewJob();
    SetTemplate(template_json, job.spec);
    json pod = LearnerPod(job, {}, 1, 0, {"n"}, "10.0.0.7", {.scrape_annotations = true});
    pod.at("metadata").at("annotations").erase("pliant.dev/node");
    return pod.at("metadata").at("annotations");
  };
  EXPECT_EQ(annotations_of("{}"), json::parse(R"({"prometheus.io/scrape": "true",
      "prometheus.io/port": "9090", "prometheus.io/path": "/metrics"})"));
  const char* own = R"({"prometheus.io/port":"8000","prometheus.io/scrape":"true"})";
  EXPECT_EQ(annotations_of(R"({"metadata": {"annotations": )" + std::string(own) + "}}"),
            json::parse(own));
}

TEST(LearnerPod, KeepsTheTemplateButOursWins) {
  const json pod = PodOf(R"({
    "metadata": {"name": "mine", "labels": {"team": "a", "pliant.dev/role": "king"}, "annotations": {"note": "x"},
                 "finalizers": ["never"]},
    "spec": {"priority": 7, "priorityClassName": "system-node-critical", "restartPolicy": "Always",
             "nodeSelector": {"zone": "z"}, "schedulingGates": [{"name": "theirs"}],
             "tolerations": [{"key": "node.kubernetes.io/not-ready", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 5}],
             "affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [
               {"matchExpressions": [{"key": "gpu", "operator": "Exists"}]}, {"matchExpressions": [{"key": "tpu", "operator": "Exists"}]}]}}},
             "volumes": [{"name": "data", "emptyDir": {}}],
             "containers": [{"name": "helper"},
                            {"name": "learner", "env": [{"name": "PLIANT_SEED", "value": "9"}, {"name": "LR", "value": "0.1"}],
                             "resources": {"limits": {"cpu": "2", "nvidia.com/gpu": 4}, "requests": {"nvidia.com/gpu": 4}}}]}})");
  EXPECT_EQ(pod.at("/metadata/labels/team"_json_pointer), "a");
  EXPECT_EQ(pod.at("/metadata/labels/pliant.dev~1role"_json_pointer), "learner");
  EXPECT_EQ(pod.at("/metadata/annotations/note"_json_pointer), "x");
  EXPECT_FALSE(pod.at("metadata").contains("finalizers"));

  const json& spec = pod.at("spec");
  EXPECT_FALSE(spec.contains("priority"));
  EXPECT_EQ(spec.at("priorityClassName"), "low");
  EXPECT_EQ(spec.at("restartPolicy"), "Never");
  EXPECT_EQ(spec.at("nodeSelector"), json({{"zone", "z"}}));
  EXPECT_EQ(spec.at("schedulingGates").size(), 2u);
  EXPECT_EQ(spec.at("tolerations").size(), 2u) << "the template's own toleration stays";
  EXPECT_EQ(spec.at("volumes").size(), 4u);
  for (const json& term :
       spec.at("/affinity/nodeAffinity/requiredDuringSchedulingIgnoredDuringExecution/"
               "nodeSelectorTerms"_json_pointer)) {
    ASSERT_EQ(term.at("matchExpressions").size(), 2u) << "terms are alternatives";
    EXPECT_EQ(term.at("/matchExpressions/1/values/0"_json_pointer), "host-1");
  }
  EXPECT_FALSE(spec.at("containers").at(0).contains("env")) << "other containers stay unchanged";
  const json& learner = spec.at("containers").at(1);
  EXPECT_EQ(learner.at("/resources/limits"_json_pointer),
            json({{"cpu", "2"}, {"nvidia.com/gpu", "1"}}));
  EXPECT_TRUE(learner.at("/resources/requests"_json_pointer).empty());
  json env;
  for (const json& variable : learner.at("env")) env[variable.at("name")] = variable;
  EXPECT_EQ(env.at("LR").at("value"), "0.1");
  EXPECT_EQ(env.at("PLIANT_SEED").at("value"), "7");
}

// The CRD stores the template unchecked, so any field may have any type. The dry run refuses it.
TEST(LearnerPod, FieldsThatItIgnoresAreNamed) {
  const struct {
    const char* pod_template;
    std::vector<std::string> ignored;
  } kCases[] = {
      {R"({"metadata": {"labels": {"a": "b"}, "annotations": {}, "creationTimestamp": null},
           "spec": {"restartPolicy": "Never", "containers": [
               {"name": "learner", "env": [{"name": "LR", "value": "1"}]}]}})",
       {}},
      {R"({"metadata": {"finalizers": ["a/b"], "ownerReferences": []},
           "spec": {"restartPolicy": "Always", "automountServiceAccountToken": true,
                    "terminationGracePeriodSeconds": 5, "containers": [
               {"name": "sidecar", "env": [{"name": "PLIANT_SEED"}]},
               {"name": "learner", "env": [{"name": "PLIANT_SEED"}, {"name": "PLIANT_LOG"}]}]}})",
       {"metadata.finalizers", "metadata.ownerReferences", "spec.restartPolicy",
        "spec.automountServiceAccountToken", "spec.terminationGracePeriodSeconds",
        "env PLIANT_SEED"}},
      {R"({"metadata": 7, "spec": {"containers": {"a": 1}}})", {}},
      {R"([1, 2])", {}},
      {"", {}}};
  for (const auto& c : kCases) {
    api::ElasticTrainingJob job = NewJob();
    job.spec.learner_template.json = c.pod_template;
    EXPECT_EQ(IgnoredFields(job, kTraining), c.ignored) << c.pod_template;
  }
}

TEST(LearnerPod, SurvivesANonsensicalTemplate) {
  for (
      const char* pod_template :
      {"", "7", "{}", R"({"metadata": 5, "spec": []})", R"({"metadata": {"labels": "x"}})",
       R"({"spec": {"containers": "none", "tolerations": {}, "volumes": 1, "affinity": 2}})",
       R"({"spec": {"containers": [7, {"name": 5}, {"name": "learner", "env": [1, {"name": 2}], "resources": "all"}]}})",
       R"({"spec": {"affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [3]}}}}})"}) {
    EXPECT_EQ(PodOf(pod_template).at("/metadata/name"_json_pointer), "digits-1a2b3-4");
  }
}

TEST(LearnerPod, TheGraceOfAPodHasAnEnd) {
  api::ElasticTrainingJob job = NewJob();
  job.spec.resize.grace_period = std::chrono::seconds(3599);
  const json pod = LearnerPod(job, kTraining, 1, 0, {"n"}, "::1", {});
  EXPECT_EQ(pod.at("/spec/terminationGracePeriodSeconds"_json_pointer), 3600);
  EXPECT_EQ(EnvOf(pod).at("PLIANT_COORDINATOR"), "[::1]:8443");
  EXPECT_FALSE(pod.at("spec").contains("priorityClassName"));
}

}  // namespace
}  // namespace pliant::controller
