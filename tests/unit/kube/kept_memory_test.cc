// Measures how many bytes stores keep per object, given objects as the API server returns them:
// only the fields that are used may be kept.

#include <algorithm>
#include <cstddef>
#include <nlohmann/json.hpp>

#include <gtest/gtest.h>

#include "base/format.h"
#include "base/sim_event_loop.h"
#include "operator/api/elastic_training_job.h"
#include "operator/api/pod.h"
#include "operator/kube/informer.h"
#include "tests/kube/live_bytes.h"

namespace pliant::kube {
namespace {

using nlohmann::json;

constexpr int kObjects = 20;

std::string UidOf(int number) { return Format("00000000-0000-4000-8000-{:012}", number); }

// Includes what accumulates on objects in a cluster and is not used: managed fields and
// annotations.
json Metadata(const std::string& name, int number) {
  json fields;
  for (int i = 0; i < 200; ++i) fields["f:spec"][Format("f:field-{}", i)] = {{".", {}}};
  return {{"name", name},
          {"namespace", "team-a"},
          {"uid", UidOf(number)},
          {"resourceVersion", std::to_string(1'000'000 + number)},
          {"generation", 1},
          {"creationTimestamp", "2026-01-01T00:00:00Z"},
          {"annotations", {{"checksum/config", std::string(6000, 'a')}}},
          {"managedFields", json::array({{{"manager", "kubelet"}, {"fieldsV1", fields}}})}};
}

json PodObject(int number) {
  json conditions = json::array();
  for (const char* type :
       {"PodReadyToStartContainers", "Initialized", "Ready", "ContainersReady", "PodScheduled"}) {
    conditions.push_back(
        {{"type", type}, {"status", "True"}, {"lastTransitionTime", "2026-01-01T00:00:00Z"}});
  }
  json env = json::array();
  for (int i = 0; i < 100; ++i) {
    env.push_back({{"name", Format("SETTING_{}", i)}, {"value", std::string(60, 'v')}});
  }
  json pod = {
      {"metadata", Metadata(Format("web-7d4b9c6f58-{:05}", number), number)},
      {"spec",
       {{"nodeName", "node-0001"},
        {"containers", json::array({{{"name", "web"},
                                     {"image", "registry.example/web:1"},
                                     {"env", env},
                                     {"resources", {{"requests", {{"cpu", "1"}}}}}}})}}},
      {"status",
       {{"phase", "Running"},
        {"podIP", "10.244.100.200"},
        {"conditions", conditions},
        {"containerStatuses",
         json::array({{{"name", "web"},
                       {"imageID", std::string(100, 'i')},
                       {"state", {{"running", {{"startedAt", "2026-01-01T00:00:00Z"}}}}}}})}}}};
  pod["metadata"]["ownerReferences"] =
      json::array({{{"uid", UidOf(number / 10)}, {"controller", true}}});
  return pod;
}

json LearnerObject(int number) {
  json pod = PodObject(number);
  pod["metadata"]["labels"] = {{"pliant.dev/job", "resnet"},
                               {"pliant.dev/job-uid", UidOf(1)},
                               {"pliant.dev/role", "learner"},
                               {"pliant.dev/learner", std::to_string(number)}};
  return pod;
}

json JobObject(int number) {
  json job = json::parse(R"({
    "spec": {
      "elastic": {"maxLearners": 8},
      "training": {"globalBatchSize": 256},
      "checkpoint": {"volume": {"hostPath": {"path": "/data"}}},
      "template": {"spec": {"containers": [{"name": "learner", "image": "registry.example/resnet:1"}]}}},
    "status": {
      "phase": "Queued", "coordinatorImage": "pliant:1", "learners": 0, "desiredLearners": 0,
      "reason": "waits for 1 GPU (minLearners 1): other jobs are before it",
      "selector": "pliant.dev/job-uid=00000000-0000-4000-8000-000000000000,pliant.dev/role=learner",
      "training": {"globalBatchSize": 256, "logicalShards": 32},
      "conditions": [
        {"type": "Admitted", "status": "True", "reason": "Admitted", "message": "the pod template was accepted"},
        {"type": "Progressing", "status": "True", "reason": "Queued", "message": "other jobs are before it"},
        {"type": "Running", "status": "False", "reason": "Queued", "message": "no learner trains"}]}})");
  job["metadata"] = Metadata(Format("resnet-{}", number), number);
  return job;
}

// Bytes per object when there are many objects.
template <typename T>
std::ptrdiff_t KeptOf(json (*object)(int number), Result<T> (*decode)(const json& object)) {
  SimEventLoop loop;
  Informer<T> informer(loop, decode);
  const ReflectorSink sink = informer.Sink();
  const std::ptrdiff_t before = LiveBytes();
  sink.on_list_begin();
  for (int number = 0; number < kObjects; ++number) sink.on_listed(object(number));
  sink.on_list_end();
  loop.RunFor(Duration::zero());
  EXPECT_EQ(informer.store().size(), kObjects) << "all objects arrived";
  return (LiveBytes() - before) / kObjects;
}

Result<api::ElasticTrainingJob> DecodeJob(const json& object) { return api::DecodeJob(object, {}); }
Result<api::Pod> DecodePod(const json& object) { return api::DecodePod(object, "nvidia.com/gpu"); }

TEST(KeptMemory, IsSmallForForeignPods) {
  ASSERT_GT(PodObject(1).dump().size(), 20'000u);
  EXPECT_LT(KeptOf<api::Pod>(PodObject, DecodePod), 1024);
}

TEST(KeptMemory, IsSmallForLearners) {
  EXPECT_LT(KeptOf<api::Pod>(LearnerObject, DecodePod), 4096);
}

TEST(KeptMemory, IsSmallForJobs) {
  ASSERT_GT(JobObject(1).dump().size(), 8'000u);
  EXPECT_LT(KeptOf<api::ElasticTrainingJob>(JobObject, DecodeJob), 3072);
}

// The largest template that the CRD allows, which one tenant may submit a thousand times.
json LargeJobObject(int number) {
  json job = JobObject(number);
  job["spec"]["template"]["metadata"]["annotations"]["note"] = std::string(400'000, 'n');
  return job;
}

TEST(KeptMemory, IsSmallForJobsWithLargeTemplates) {
  EXPECT_LT(KeptOf<api::ElasticTrainingJob>(LargeJobObject, DecodeJob), 3072);
}

// A pod that waits for GPUs, with `values` values of affinity. Anybody may create thousands.
json PendingObject(int number, int values) {
  json pod = PodObject(number);
  pod["spec"].erase("nodeName");
  pod["spec"]["containers"][0]["resources"]["limits"]["nvidia.com/gpu"] = "64";
  json& required =
      pod["spec"]["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"];
  for (int left = values; left > 0; left -= 256) {
    json expression = {{"key", "zone"}, {"operator", "NotIn"}, {"values", json::array()}};
    for (int value = 0; value < std::min(left, 256); ++value) {
      expression["values"].push_back(Format("{}-{:060}", number, value));
    }
    required["nodeSelectorTerms"].push_back({{"matchExpressions", json::array({expression})}});
  }
  pod["status"] = {
      {"phase", "Pending"},
      {"conditions",
       json::array(
           {{{"type", "PodScheduled"}, {"status", "False"}, {"reason", "Unschedulable"}}})}};
  return pod;
}

json FatPodObject(int number) { return PendingObject(number, 2048); }
json LeanPodObject(int number) { return PendingObject(number, 30); }

TEST(KeptMemory, IsBoundedForPendingPods) {
  ASSERT_GT(FatPodObject(1).dump().size(), 128'000u);
  EXPECT_LT(KeptOf<api::Pod>(FatPodObject, DecodePod), 1024);
  const std::ptrdiff_t lean = KeptOf<api::Pod>(LeanPodObject, DecodePod);
  EXPECT_GT(lean, 2048) << "they are kept";
  EXPECT_LT(lean, 1024 + static_cast<std::ptrdiff_t>(api::kMaxPendingNeeds));
}

}  // namespace
}  // namespace pliant::kube
