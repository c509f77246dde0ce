#include "operator/api/pod.h"

#include <nlohmann/json.hpp>

#include <gtest/gtest.h>

namespace pliant::api {
namespace {

using nlohmann::json;

Pod Decoded(const std::string& text) {
  const Result<Pod> pod = DecodePod(json::parse(text), "nvidia.com/gpu");
  EXPECT_TRUE(pod) << pod.error();
  return pod.value_or(Pod{});
}

TEST(Pod, ReadsALearner) {
  const Pod pod = Decoded(R"({
    "metadata": {"name": "job-1a2b3-4", "namespace": "team-a", "uid": "u4", "resourceVersion": "77",
                 "creationTimestamp": "1970-01-01T00:01:00Z", "deletionTimestamp": "1970-01-01T00:02:00Z",
                 "labels": {"pliant.dev/learner": "4", "app": "x"},
                 "ownerReferences": [{"uid": "other"}, {"apiVersion": "pliant.dev/v1alpha1", "kind": "ElasticTrainingJob",
                                                      "name": "job", "uid": "job-uid", "controller": true}]},
    "spec": {"nodeName": "gpu-1", "schedulingGates": [{"name": "pliant.dev/gpu"}],
             "affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [
               {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["gpu-1"]}]}]}}},
             "containers": [{"name": "learner", "resources": {"limits": {"nvidia.com/gpu": "1"}, "requests": {"cpu": "250m", "memory": "1Gi"}}}]},
    "status": {"phase": "Failed", "reason": "UnexpectedAdmissionError", "podIP": "10.1.0.4",
               "conditions": [{"type": "DisruptionTarget", "status": "True", "reason": "EvictionByEvictionAPI"}],
               "containerStatuses": [{"name": "learner", "restartCount": 0, "state": {"terminated":
                 {"exitCode": 2, "reason": "Error", "message": "{}", "finishedAt": "1970-01-01T00:03:00Z"}}}]}})");
  EXPECT_EQ(pod.meta.owner_uid, "job-uid");
  EXPECT_EQ(pod.meta.owner_name, "job");
  EXPECT_EQ(pod.meta.labels, (std::map<std::string, std::string>{{"pliant.dev/learner", "4"}}));
  EXPECT_EQ(pod.meta.created, WallTime(std::chrono::minutes(1)));
  EXPECT_TRUE(pod.deleting());
  EXPECT_TRUE(pod.ended());
  EXPECT_EQ(pod.planned_node, "gpu-1");
  EXPECT_EQ(pod.scheduling_gates, std::vector<std::string>{"pliant.dev/gpu"});
  EXPECT_EQ(pod.requests,
            (Resources{.gpus = 1, .cpu_millis = 250, .memory_bytes = std::int64_t{1} << 30}));
  ASSERT_NE(FindCondition(pod, "DisruptionTarget"), nullptr);
  EXPECT_TRUE(FindCondition(pod, "DisruptionTarget")->status);
  ASSERT_NE(FindContainer(pod, "learner"), nullptr);
  EXPECT_EQ(FindContainer(pod, "learner")->terminated->exit_code, 2);
  EXPECT_EQ(FindContainer(pod, "other"), nullptr);
}

TEST(Pod, ReadsSinceWhenAContainerRuns) {
  const Pod pod = Decoded(R"({
    "metadata": {"name": "p", "labels": {"pliant.dev/role": "learner"}}, "spec": {"containers": []},
    "status": {"containerStatuses": [
      {"name": "learner", "state": {"running": {"startedAt": "1970-01-01T00:01:00Z"}}}]}})");
  EXPECT_TRUE(FindContainer(pod, "learner")->running);
  EXPECT_EQ(FindContainer(pod, "learner")->running_since, WallTime(std::chrono::minutes(1)));
}

TEST(Pod, CountsItsRequestsAsTheSchedulerDoes) {
  const Pod pod = Decoded(R"({
    "metadata": {"name": "p"},
    "spec": {"overhead": {"cpu": "10m"},
             "initContainers": [{"name": "sidecar", "restartPolicy": "Always", "resources": {"requests": {"cpu": "100m"}}},
                                {"name": "fetch", "resources": {"requests": {"cpu": "2", "memory": "1Mi"}}}],
             "containers": [{"name": "a", "resources": {"requests": {"cpu": "1"}, "limits": {"nvidia.com/gpu": 2}}},
                            {"name": "b", "resources": {"requests": {"cpu": "500m", "memory": "2Mi"}}}]}})");
  // The init container runs at the same time as the sidecar before it: 2100m, more than 1600m of
  // the rest.
  EXPECT_EQ(pod.requests.cpu_millis, 2110);
  EXPECT_EQ(pod.requests.memory_bytes, 2 << 20);
}

TEST(Pod, CountsWhatItAsksForAsAWhole) {
  const Pod pod = Decoded(R"({
    "metadata": {"name": "p"},
    "spec": {"resources": {"requests": {"cpu": "4"}, "limits": {"memory": "8Gi"}}, "overhead": {"cpu": "10m"},
             "containers": [{"name": "a", "resources": {"requests": {"cpu": "1"}}}, {"name": "b"}]}})");
  EXPECT_EQ(pod.requests.cpu_millis, 4010);
  EXPECT_EQ(pod.requests.memory_bytes, std::int64_t{8} << 30);
}

// Some pools count them as GPUs.
TEST(Pod, CountsAllExtendedResources) {
  const char* const kPod = R"({
    "metadata": {"name": "p"},
    "spec": {"initContainers": [{"name": "i", "resources": {"limits": {"nvidia.com/mig-1g.10gb": "5"}}}],
             "containers": [{"name": "a", "resources": {"limits": {"nvidia.com/gpu": 1, "nvidia.com/mig-1g.10gb": 2}}},
                            {"name": "b", "resources": {"limits": {"nvidia.com/mig-1g.10gb": 1, "rdma/hca": "1",
                                                                   "hugepages-2Mi": "2Mi", "amd.com/gpu": 0}}}]}})";
  const Resources requests = Decoded(kPod).requests;
  EXPECT_EQ(requests.others,
            (std::map<std::string, std::int64_t>{{"nvidia.com/mig-1g.10gb", 5}, {"rdma/hca", 1}}));
  EXPECT_EQ(requests.GpusOf(""), 1);
  EXPECT_EQ(requests.GpusOf("nvidia.com/mig-1g.10gb"), 5);
  EXPECT_EQ(requests.GpusOf("amd.com/gpu"), 0);
}

// Names are not stored without bound. A pod that names very many takes no more for that.
TEST(Pod, HasABoundedNumberOfExtendedResources) {
  json pod = json::parse(R"({"metadata": {"name": "p"}, "spec": {"containers": []}})");
  for (int i = 0; i < 300; ++i) {
    const json limits = {{"a.b/" + std::to_string(i), "1"}, {"a.b/" + std::to_string(i + 1), "1"}};
    pod["spec"]["containers"].push_back({{"name", "c"}, {"resources", {{"limits", limits}}}});
  }
  const Resources requests = Decoded(pod.dump()).requests;
  EXPECT_EQ(requests.others.size(), 32u);
  EXPECT_EQ(requests.GpusOf("a.b/1"), 2);
  EXPECT_EQ(requests.GpusOf("nvidia.com/mig-1g.10gb"), 0);
}

// Until the resize is complete, the kubelet reserves the larger amount.
TEST(Pod, CountsWhatIsSetAsideForItWhileItIsResized) {
  const Pod pod = Decoded(R"({
    "metadata": {"name": "p"},
    "spec": {"containers": [{"name": "a", "resources": {"requests": {"cpu": "1", "memory": "1Gi"}}},
                            {"name": "b", "resources": {"requests": {"cpu": "1"}}}]},
    "status": {"containerStatuses": [
      {"name": "a", "resources": {"requests": {"cpu": "3"}}, "allocatedResources": {"cpu": "2", "memory": "2Gi"}}]}})");
  EXPECT_EQ(pod.requests.cpu_millis, 4000);
  EXPECT_EQ(pod.requests.memory_bytes, std::int64_t{2} << 30);
}

// If a pod were left out, its GPUs would be given to another pod.
TEST(Pod, IsSeenWhateverItHolds) {
  json object = json::parse(R"({
    "metadata": {"name": "p", "labels": {"pliant.dev/job": "a"}},
    "spec": {"nodeName": "n", "containers": [], "schedulingGates": []}, "status": {"phase": "Running"}})");
  for (int i = 0; i < 2000; ++i) {
    const std::string name = std::to_string(i);
    object["spec"]["containers"].push_back(
        {{"name", name}, {"resources", {{"limits", {{"nvidia.com/gpu", "1"}}}}}});
    object["spec"]["schedulingGates"].push_back({{"name", name}});
    object["metadata"]["ownerReferences"].push_back({{"name", name}});
    object["status"]["conditions"].push_back({{"type", name}});
  }
  Result<Pod> pod = DecodePod(object, "nvidia.com/gpu");
  ASSERT_TRUE(pod) << pod.error();
  EXPECT_EQ(pod->requests.gpus, 2000);
  EXPECT_EQ(pod->node_name, "n");

  object["status"]["conditions"] = json::object();
  object["spec"]["containers"][0]["resources"]["limits"]["cpu"] = "much";
  pod = DecodePod(object, "nvidia.com/gpu");
  ASSERT_TRUE(pod) << pod.error();
  EXPECT_EQ(pod->phase, PodPhase::kRunning);
  EXPECT_EQ(pod->requests, (Resources{INT64_MAX, INT64_MAX, INT64_MAX, {{"", INT64_MAX}}}))
      << "what is left of its node is unknown";
}

// Room may be made for a pod of another workload, but only if it asks for GPUs.
TEST(Pod, KeepsWhatAPendingPodNeeds) {
  const auto decode = [](const char* gpus, const char* reason) {
    nlohmann::json pod = nlohmann::json::parse(R"({
      "metadata": {"name": "notebook", "namespace": "others"},
      "spec": {"nodeSelector": {"zone": "a"}, "containers": [{"name": "c"}]},
      "status": {"conditions": [{"type": "PodScheduled", "status": "False"}]}})");
    pod["spec"]["containers"][0]["resources"]["limits"]["nvidia.com/gpu"] = gpus;
    pod["status"]["conditions"][0]["reason"] = reason;
    const auto decoded = DecodePod(pod, "nvidia.com/gpu");
    EXPECT_TRUE(decoded) << decoded.error();
    return decoded.value_or(Pod{});
  };
  const Pod pod = decode("2", "Unschedulable");
  EXPECT_TRUE(pod.unschedulable);
  ASSERT_NE(pod.asks.needs, nullptr);
  EXPECT_EQ(pod.asks.needs->resources.gpus, 0) << "a pool may count another resource";
  EXPECT_EQ(pod.asks.needs->node_selector.at("zone"), "a");
  EXPECT_EQ(decode("0", "Unschedulable").asks.needs, nullptr);
  EXPECT_EQ(decode("2", "SchedulingGated").asks.needs, nullptr);
}

json PendingWith(int values, int length) {
  json expression = {{"key", "zone"}, {"operator", "NotIn"}, {"values", json::array()}};
  for (int value = 0; value < values; ++value) {
    const std::string number = std::to_string(value);
    expression["values"].push_back(number + std::string(length - number.size(), 'v'));
  }
  json terms = json::array();
  for (const char* each : {"a", "b", "c", "d", "e", "f", "g", "h"}) {
    expression["key"] = each;
    terms.push_back({{"matchExpressions", json::array({expression})}});
  }
  json pod = json::parse(R"({
    "metadata": {"name": "fat", "namespace": "others"},
    "spec": {"containers": [{"name": "c", "resources": {"limits": {"nvidia.com/gpu": 1}}}]},
    "status": {"conditions": [{"type": "PodScheduled", "status": "False",
                               "reason": "Unschedulable"}]}})");
  pod["spec"]["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"] = {
      {"nodeSelectorTerms", std::move(terms)}};
  return pod;
}

// Anybody may create thousands of such pods.
TEST(Pod, KeepsOnlySmallNeedsOfPendingPods) {
  const struct {
    const char* what;
    int values;
    int length;
    bool kept;
  } kCases[] = {{"a few values in each of eight terms", 4, 20, true},
                {"as many as the CRD allows a job", 256, 63, false},
                {"one long value", 1, 318, false},
                {"a megabyte", 1, 1 << 20, false}};
  for (const auto& c : kCases) {
    const Result<Pod> pod = DecodePod(PendingWith(c.values, c.length), "nvidia.com/gpu");
    ASSERT_TRUE(pod) << pod.error();
    EXPECT_TRUE(pod->unschedulable);
    EXPECT_EQ(pod->asks.needs != nullptr, c.kept) << c.what;
  }
  json labelled = PendingWith(256, 63);
  labelled["metadata"]["labels"]["pliant.dev/job-uid"] = "u";
  EXPECT_EQ(DecodePod(labelled, "nvidia.com/gpu")->asks.needs, nullptr) << "it is no learner";
}

TEST(Pod, SharesEqualNeeds) {
  NeedsCache cache;
  const auto decode = [&](int values) {
    return DecodePod(PendingWith(values, 20), "nvidia.com/gpu", &cache).value().asks.needs;
  };
  auto one = decode(2);
  const auto two = decode(2);
  EXPECT_EQ(one, two);
  EXPECT_NE(one, decode(3));
  EXPECT_EQ(cache.size(), 1u) << "needs that nobody holds are forgotten";
  one.reset();
  EXPECT_EQ(decode(2), two);
}

TEST(Pod, KeepsNeitherTheGatesNorTheLabelsOfAFlood) {
  json object = json::parse(R"({"metadata": {"name": "p"}, "spec": {"containers": []}})");
  for (int i = 0; i < 1000; ++i) {
    object["spec"]["schedulingGates"].push_back({{"name", "gate-" + std::to_string(i)}});
  }
  EXPECT_EQ(DecodePod(object, "nvidia.com/gpu")->scheduling_gates.size(), 1u);
  for (int i = 0; i < 1000; ++i) {
    object["metadata"]["labels"]["pliant.dev/" + std::to_string(i)] = std::string(63, 'x');
  }
  EXPECT_EQ(DecodePod(object, "nvidia.com/gpu")->meta.labels.size(), 32u);
}

TEST(Pod, KnowsTheAccountOfAPodOfOurs) {
  json object = json::parse(R"({"metadata": {"name": "p", "labels": {"pliant.dev/role": "learner"}},
                                "spec": {"containers": []}})");
  EXPECT_TRUE(DecodePod(object, "nvidia.com/gpu")->mounts_token);
  EXPECT_FALSE(DecodePod(object, "nvidia.com/gpu")->has_own_account);
  object["spec"]["automountServiceAccountToken"] = false;
  object["spec"]["serviceAccountName"] = "deployer";
  EXPECT_FALSE(DecodePod(object, "nvidia.com/gpu")->mounts_token);
  EXPECT_TRUE(DecodePod(object, "nvidia.com/gpu")->has_own_account);
}

TEST(Pod, KnowsWhoControlsIt) {
  const struct {
    const char* owner;
    const char* job_uid;
    bool of_daemon_set;
  } kCases[] = {
      {R"({"apiVersion": "pliant.dev/v1alpha1", "kind": "ElasticTrainingJob", "name": "j", "uid": "u", "controller": true})",
       "u", false},
      {R"({"apiVersion": "pliant.dev/v1alpha1", "kind": "ElasticTrainingJob", "name": "j", "uid": "u"})",
       "", false},
      {R"({"apiVersion": "nosuch.example/v1", "kind": "ElasticTrainingJob", "name": "j", "uid": "u", "controller": true})",
       "", false},
      {R"({"apiVersion": "pliant.dev/v1alpha1", "kind": "X", "name": "j", "uid": "u", "controller": true})",
       "", false},
      {R"({"apiVersion": "apps/v1", "kind": "DaemonSet", "name": "d", "uid": "u", "controller": true})",
       "", true},
      {R"({"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "d", "uid": "u", "controller": true})",
       "", false},
  };
  for (const auto& c : kCases) {
    json object = json::parse(R"({"metadata": {"name": "p"}, "spec": {"containers": []}})");
    object["metadata"]["ownerReferences"].push_back(json::parse(c.owner));
    const Result<Pod> pod = DecodePod(object, "nvidia.com/gpu");
    ASSERT_TRUE(pod) << pod.error();
    EXPECT_EQ(pod->meta.owner_uid, c.job_uid) << c.owner;
    EXPECT_EQ(pod->of_daemon_set, c.of_daemon_set) << c.owner;
    EXPECT_EQ(pod->meta.has_other_owner, *c.job_uid == '\0') << c.owner;
  }
}

// Its affinity names a hostname, which need not be the node's name. A tenant's own pod says
// nothing.
TEST(Pod, ALearnersAnnotationNamesItsNode) {
  json pod = json::parse(R"({
    "metadata": {"name": "p", "annotations": {"pliant.dev/node": "gpu-1"}, "labels": {"pliant.dev/role": "learner"}},
    "spec": {"containers": [], "affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [
               {"matchExpressions": [{"key": "kubernetes.io/hostname", "operator": "In", "values": ["host-1"]}]}]}}}}})");
  EXPECT_EQ(Decoded(pod.dump()).planned_node, "gpu-1");
  pod["metadata"]["annotations"]["pliant.dev/node"] = std::string(254, 'n');
  EXPECT_EQ(Decoded(pod.dump()).planned_node, "");
  pod["metadata"]["annotations"]["pliant.dev/node"] = 7;
  EXPECT_EQ(Decoded(pod.dump()).planned_node, "");
  pod["metadata"] = {{"name", "p"}, {"annotations", {{"pliant.dev/node", "gpu-1"}}}};
  EXPECT_EQ(Decoded(pod.dump()).planned_node, "");
}

TEST(Pod, SeveralAffinityTermsPinNothing) {
  const Pod pod = Decoded(R"({
    "metadata": {"name": "p"},
    "spec": {"containers": [], "affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [
               {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["a"]}]},
               {"matchExpressions": [{"key": "zone", "operator": "Exists"}]}]}}}}})");
  EXPECT_EQ(pod.planned_node, "");
}

TEST(Pod, NamesTheFieldThatIsWrong) {
  const struct {
    const char* object;
    const char* message;
  } kCases[] = {
      {"[]", "it: not an object"},
      {R"({"metadata": {}})", "metadata.name: missing"},
      {R"({"metadata": {"name": 7}})", "metadata.name: not a string"},
  };
  for (const auto& c : kCases) {
    const Result<Pod> pod = DecodePod(json::parse(c.object), "nvidia.com/gpu");
    ASSERT_FALSE(pod) << c.object;
    EXPECT_EQ(pod.error(), (Error{ErrorCode::kInvalid, c.message}));
  }
}

}  // namespace
}  // namespace pliant::api
