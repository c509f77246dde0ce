#include "operator/api/pod.h"

#include <nlohmann/json.hpp>

#include <gtest/gtest.h>

namespace pliant::api {
namespace {

using nlohmann::json;

Pod Decoded(const char* text) {
  const Result<Pod> pod = DecodePod(json::parse(text), "nvidia.com/gpu");
  EXPECT_TRUE(pod) << pod.error();
  return pod.value_or(Pod{});
}

TEST(Pod, ReadsALearner) {
  const Pod pod = Decoded(R"({
    "metadata": {"name": "job-1a2b3-4", "namespace": "team-a", "uid": "u4", "resourceVersion": "77",
                 "creationTimestamp": "1970-01-01T00:01:00Z", "deletionTimestamp": "1970-01-01T00:02:00Z",
                 "labels": {"pliant.dev/learner": "4", "app": "x"},
                 "ownerReferences": [{"uid": "other"}, {"uid": "job-uid", "controller": true}]},
    "spec": {"nodeName": "gpu-1", "schedulingGates": [{"name": "pliant.dev/gpu"}],
             "affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [
               {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["gpu-1"]}]}]}}},
             "containers": [{"name": "learner", "resources": {"limits": {"nvidia.com/gpu": "1"}, "requests": {"cpu": "250m", "memory": "1Gi"}}}]},
    "status": {"phase": "Failed", "reason": "UnexpectedAdmissionError", "podIP": "10.1.0.4",
               "conditions": [{"type": "DisruptionTarget", "status": "True", "reason": "EvictionByEvictionAPI"}],
               "containerStatuses": [{"name": "learner", "restartCount": 0, "state": {"terminated":
                 {"exitCode": 2, "reason": "Error", "message": "{}", "finishedAt": "1970-01-01T00:03:00Z"}}}]}})");
  EXPECT_EQ(pod.meta.owner_uid, "job-uid");
  EXPECT_EQ(pod.meta.labels, (std::map<std::string, std::string>{{"pliant.dev/learner", "4"}}));
  EXPECT_EQ(pod.meta.created, WallTime(std::chrono::minutes(1)));
  EXPECT_TRUE(pod.deleting());
  EXPECT_TRUE(pod.ended());
  EXPECT_EQ(pod.pinned_node, "gpu-1");
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
  // The init container runs beside the sidecar before it: 2100m, more than 1600m of the rest.
  EXPECT_EQ(pod.requests.cpu_millis, 2110);
  EXPECT_EQ(pod.requests.memory_bytes, 2 << 20);
}

TEST(Pod, SeveralAffinityTermsPinNothing) {
  const Pod pod = Decoded(R"({
    "metadata": {"name": "p"},
    "spec": {"containers": [], "affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [
               {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["a"]}]},
               {"matchExpressions": [{"key": "zone", "operator": "Exists"}]}]}}}}})");
  EXPECT_EQ(pod.pinned_node, "");
}

TEST(Pod, NamesTheFieldThatIsWrong) {
  const struct {
    const char* object;
    const char* message;
  } kCases[] = {
      {"[]", "it: not an object"},
      {R"({"metadata": {}})", "metadata.name: missing"},
      {R"({"metadata": {"name": 7}})", "metadata.name: not a string"},
      {R"({"metadata": {"name": "p"}, "spec": {"containers": [{"resources": {"limits": {"cpu": "x"}}}]}})",
       "spec.containers[0].resources.limits.cpu: \"x\" is no quantity"},
      {R"({"metadata": {"name": "p", "labels": {"pliant.dev/job": "a"}}, "status": {"conditions": {}}})",
       "status.conditions: not a list of at most 1024"},
  };
  for (const auto& c : kCases) {
    const Result<Pod> pod = DecodePod(json::parse(c.object), "nvidia.com/gpu");
    ASSERT_FALSE(pod) << c.object;
    EXPECT_EQ(pod.error(), (Error{ErrorCode::kInvalid, c.message}));
  }
}

}  // namespace
}  // namespace pliant::api
