// Fuzzes what the operator reads, the coordinator's progress and objects of the API server, and
// what it makes of a job: a plan, decisions and a learner's pod. And reports that it replays.

#include <nlohmann/json.hpp>

#include "base/check.h"
#include "operator/api/elastic_training_job.h"
#include "operator/api/gpu_pool.h"
#include "operator/api/name_space.h"
#include "operator/api/node.h"
#include "operator/api/pod.h"
#include "operator/api/service.h"
#include "operator/api/training_queue.h"
#include "operator/controller/lifecycle/job_lifecycle.h"
#include "operator/controller/model/names.h"
#include "operator/controller/model/progress.h"
#include "operator/controller/objects/learner_pod.h"
#include "operator/controller/rounds/snapshot_builder.h"
#include "operator/planner/plan.h"
#include "operator/replay/debug_snapshot.h"
#include "operator/replay/differences.h"
#include "operator/replay/explain.h"
#include "tests/fuzz/fuzz_target.h"

namespace pliant {

std::vector<std::string> fuzz::Seeds() {
  return {
      R"({"term": 2, "membership": {"id": "2.5", "learners": ["a", "b"]}, "state": "Running",
          "planAccepted": {"leaseTransitions": 3, "sequence": 17}, "step": 400, "epoch": 16, "totalSteps": 1200,
          "loss": 0.03, "samplesPerSecond": 5310.0, "accuracy": 0.9,
          "lastCheckpoint": {"step": 400, "membership": "2.5", "unixSeconds": 1790000000.5, "error": "", "reason": ""},
          "learners": [{"name": "a", "podUid": "u", "state": "Member", "step": 400}],
          "resizes": [{"membership": "2.5", "from": 1, "to": 2}], "problem": {"reason": "", "message": ""}})",
      R"({"metadata": {"name": "digits", "namespace": "a", "uid": "u", "resourceVersion": "9", "generation": 2,
                       "creationTimestamp": "2026-01-01T00:00:00Z", "labels": {"pliant.dev/job": "x"}},
          "spec": {"elastic": {"minLearners": 1, "maxLearners": 8}, "training": {"globalBatchSize": 256, "seed": 1},
                   "checkpoint": {"volume": {"hostPath": {"path": "/d"}}, "resumeFrom": {"path": "x"}},
                   "resize": {"cooldownSeconds": 3}, "failurePolicy": {"permanentExitCodes": [2]},
                   "template": {"spec": {"containers": [{"name": "learner", "resources": {"limits": {"cpu": "2", "memory": "0e400"}}}],
                                "nodeSelector": {"a": "b"}, "tolerations": [{"operator": "Exists"}]}}},
          "status": {"phase": "Running", "conditions": [{"type": "A", "status": "True", "reason": "B", "message": "",
                     "lastTransitionTime": "2026-01-01T00:00:00Z"}], "membershipId": "2.5", "learners": 2, "attainedGpuSeconds": 9000000000000000, "nextLearner": 7,
                     "lastCheckpoint": {"step": 3, "time": "2026-01-01T00:00:00Z"}}})",
      R"({"metadata": {"name": "p", "namespace": "a", "uid": "u"}, "spec": {"nodeName": "n", "containers": [
          {"name": "learner", "resources": {"requests": {"cpu": "100m", "memory": "1Gi", "nvidia.com/gpu": "1"}}}],
          "schedulingGates": [{"name": "g"}]}, "status": {"phase": "Running", "podIP": "10.0.0.1",
          "containerStatuses": [{"name": "learner", "state": {"terminated": {"exitCode": 1, "message": "{}"}}}]}})",
      R"({"metadata": {"name": "n", "labels": {"a": "b"}}, "spec": {"taints": [{"key": "k", "effect": "NoSchedule"}]},
          "status": {"allocatable": {"cpu": "4", "memory": "16Gi", "nvidia.com/gpu": "8"},
          "conditions": [{"type": "Ready", "status": "True"}]}})",
      R"({"metadata": {"name": "s"}, "spec": {"clusterIP": "10.0.0.7", "selector": {"a": "b"}}})",
      R"({"metadata": {"name": "a100", "generation": 2}, "spec": {
          "nodeSelector": {"matchLabels": {"gpu": "a100"}, "matchExpressions": [{"key": "a", "operator": "NotIn", "values": ["b"]}]},
          "reservedGpus": 8, "bounds": {"minRuntimeSeconds": 600, "cooldownSeconds": 20,
          "gracePeriodSeconds": 50, "gpusPerJob": 64}}, "status": {"observedGeneration": 2, "nodes": 4, "capacityGpus": 32,
          "allocatedGpus": 20, "foreignGpus": 2, "conditions": [{"type": "Ready", "status": "True", "reason": "Ready",
          "message": "", "lastTransitionTime": "2026-01-01T00:00:00Z", "observedGeneration": 2}]}})",
      R"({"metadata": {"name": "research"}, "spec": {"pool": "a100", "namespaceSelector": {"matchExpressions": [
          {"key": "team", "operator": "In", "values": ["x", "y"]}, {"key": "old", "operator": "DoesNotExist"}]},
          "weight": 300, "guaranteed": 16, "limit": 64, "lendingLimit": 8, "policy": "Fifo", "queueing": "Strict",
          "reclaim": "ShrinkOnly", "priority": {"default": 100, "max": 200}, "serviceHalfLifeSeconds": 3600, "stop": "Hold"},
          "status": {"demand": 40, "entitled": 24, "allocated": 20, "borrowed": 4, "lent": 1, "waiting": 2, "running": 5,
          "reason": "20 of 32 GPUs"}})",
      R"({"version": 1, "policy": {"firstCapSeconds": 60, "longestCapSeconds": 1800, "reserveAfterSeconds": 3600, "reserveForSeconds": 1800},
          "snapshot": {"now": 1790000000000, "pools": [{"name": "p", "reservedGpus": 1}], "budgets": [{"namespace": "a", "gpus": 6}],
          "nodes": [{"name": "m", "pool": "p", "allocatable": {"gpus": 8, "cpuMillis": 64000, "memoryBytes": 1073741824},
                     "foreign": {"gpus": 1}, "labels": {"a": "b"}, "taints": [{"key": "t", "effect": "NoSchedule"}]},
                    {"name": "n", "allocatable": {"gpus": 4, "cpuMillis": 8000, "memoryBytes": 1073741824}}],
          "queues": [{"name": "q", "pool": "p", "weight": 50, "guaranteedGpus": 4, "limitGpus": 6, "lendingLimitGpus": 1, "policy": "Fifo"},
                     {"name": "r", "pool": "p", "policy": "Priority", "strict": true, "stop": "Hold", "halfLifeSeconds": 3600}],
          "jobs": [{"namespace": "a", "name": "b", "queue": "q", "pool": "p", "minLearners": 2, "maxLearners": 8, "logicalShards": 32,
                    "needs": {"resources": {"gpus": 1, "cpuMillis": 100}, "tolerations": [{"key": "t", "exists": true}],
                              "nodeAffinity": [{"matchExpressions": [{"key": "a", "operator": "In", "values": ["b"]}]}]},
                    "desiredLearners": 3, "started": 1789999000000, "resized": 1789999990000, "minRuntimeSeconds": 600,
                    "attainedGpuSeconds": 900, "attainedAt": 1789999990000, "cap": {"learners": 3, "until": 1790000100000, "strikes": 2},
                    "avoided": [{"node": "n", "until": 1790000100000}], "belowMinimumSince": 1789999990000,
                    "learners": [{"name": "x", "node": "m", "state": "Running", "member": true}, {"name": "y", "node": "m", "state": "Starting"},
                                 {"name": "z", "node": "m", "state": "Gated", "refused": true}, {"name": "w", "node": "gone", "state": "Leaving"}]},
                   {"namespace": "a", "name": "c", "needs": {"resources": {"gpus": 2}}, "maxLearners": 2, "learnersAsked": 1},
                   {"namespace": "b", "name": "c", "queue": "r", "pool": "p", "needs": {"resources": {"gpus": 4}}, "reproducibility": "Statistical"}]},
          "plan": {"decisions": [{"namespace": "a", "name": "b", "to": 3, "reason": {"code": "Maximum", "sentence": ""}}],
                   "queues": [{"queue": "q", "state": "Served"}], "pools": [{"pool": "p"}], "gatesOpen": [{"namespace": "a", "name": "b"}]}})"};
}

}  // namespace pliant

namespace pliant {
namespace {

// Plans and runs the lifecycle of the job, with one learner that runs and one that has ended, on a
// node full of other pods.
void ActOn(const api::ElasticTrainingJob& job) {
  using namespace controller;
  const WallTime now = api::FromUnixSeconds(1'790'000'000);
  JobView view{.job = std::make_shared<const api::ElasticTrainingJob>(job),
               .unreadable = job.unreadable,
               .needs = job.spec.learner_template.needs};
  for (const int number : {0, 1}) {
    api::Pod pod;
    pod.meta = {
        .name_space = job.meta.name_space, .name = LearnerPodName(job.meta, number), .uid = "u"};
    pod.meta.labels[std::string(kLabelLearner)] = std::to_string(number);
    pod.node_name = "n";
    pod.phase = number == 0 ? api::PodPhase::kRunning : api::PodPhase::kFailed;
    view.learners.push_back(pod);
  }
  view.soft_state.checked_template.check =
      TemplateCheck{.generation = job.meta.generation, .accepted = true};
  view.soft_state.meter.gpu_seconds = static_cast<double>(job.status.waiting.attained_gpu_seconds);
  planner::ClusterSnapshot snapshot{
      .now = now,
      .nodes =
          {{.name = "m", .allocatable = {.gpus = 8, .cpu_millis = 64'000, .memory_bytes = 1 << 30}},
           {.name = "n",
            .allocatable = {.gpus = 8, .cpu_millis = 64'000, .memory_bytes = 1 << 30},
            .foreign = {.gpus = INT64_MAX, .cpu_millis = INT64_MAX, .memory_bytes = INT64_MAX}}},
      .jobs = {}};
  std::optional<JobPlan> plan;
  if (IsPlanned(view)) {
    snapshot.jobs.push_back(PlannerView(view));
    plan = JobPlan{.decision = planner::MakePlan(snapshot, {}).decisions.front()};
  }
  const Outcome outcome = ReconcileJob(view, plan, {.coordinator_image = "pliant:1"}, now);
  CHECK(api::EncodeStatus(outcome.status).is_object(), "a status can be written");
  (void)LearnerPod(job, outcome.status.training.value_or(api::FrozenTraining{}), 1, 0,
                   {"n", "host"}, "10.0.0.1", {.gpu_resource = "nvidia.com/gpu"});
}

// Times are written in whole seconds, also if they were read with fractions.
template <typename Decode>
void WriteAndReadAgain(const nlohmann::json& object, const Decode& decode) {
  const auto first = decode(object);
  if (!first) return;
  nlohmann::json again = object;
  again["status"] = api::EncodeStatus(first->status);
  const auto second = decode(again);
  CHECK(second && api::EncodeStatus(second->status) == again["status"],
        "what was read can be written and read");
}

void Match(const nlohmann::json& object) {
  const std::map<std::string, std::string> labels = {{"a", "b"}, {"team", "x"}};
  if (const auto pool = api::DecodeGpuPool(object)) {
    CHECK(!pool->spec.node_selector.empty() || pool->spec.node_selector.Matches(labels),
          "an empty selector matches everything");
  }
  if (const auto queue = api::DecodeTrainingQueue(object)) {
    (void)queue->spec.namespace_selector.Matches(labels);
    CHECK(!queue->unreadable.empty() ||
              queue->spec.guaranteed <= queue->spec.limit.value_or(api::kMaxGpus),
          "contradictions are unreadable");
  }
}

// A report of a user: whatever it says, it can be planned, explained and written.
void ReplayReport(std::string_view text) {
  const auto report = replay::ReadSnapshot(text);
  if (!report) return;
  const planner::Plan plan = planner::MakePlan(report->snapshot, report->policy);
  if (report->plan) (void)replay::Differences(*report->plan, plan);
  for (const planner::JobView& job : report->snapshot.jobs) {
    (void)replay::Explain(report->snapshot, plan, {job.key.name_space, job.key.name});
  }
  const auto again = replay::ReadSnapshot(replay::WriteSnapshot(*report));
  CHECK(again && *again == *report, "what was read can be written and read");
}

}  // namespace
}  // namespace pliant

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace pliant;
  const std::string_view text = fuzz::TextOf(data, size);
  (void)controller::DecodeProgress(text);
  ReplayReport(text);
  const auto json = nlohmann::json::parse(text, /*cb=*/nullptr, /*allow_exceptions=*/false);
  if (json.is_discarded()) return 0;
  (void)api::DecodePod(json, "nvidia.com/gpu");
  (void)api::DecodeNode(json, "nvidia.com/gpu");
  (void)api::DecodeService(json);
  (void)api::DecodeNamespace(json);
  Match(json);
  WriteAndReadAgain(json, api::DecodeGpuPool);
  WriteAndReadAgain(json, api::DecodeTrainingQueue);
  WriteAndReadAgain(json, [](const auto& object) { return api::DecodeJob(object, {}); });
  if (const auto job = api::DecodeJob(json, {})) ActOn(*job);
  return 0;
}
