// Which ElasticTrainingJobs the API server accepts and which it refuses, with which messages.
#include <fstream>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/integration/api_server.h"
#include "tests/kube/yaml_objects.h"

namespace pliant::kube {
namespace {

using nlohmann::json;
using testing::HasSubstr;
using testing::Not;

constexpr ResourceType kJobs{"pliant.dev", "v1alpha1", "elastictrainingjobs", "ElasticTrainingJob"};

const std::string kCrd = PLIANT_SOURCE_DIR "/crds/pliant.dev_elastictrainingjobs.yaml";

class JobDefinitionTest : public ApiServerTest {
 protected:
  void SetUp() override {
    ApiServerTest::SetUp();
    const auto objects = LoadYamlObjects(kCrd);
    ASSERT_TRUE(objects) << objects.error();
    ASSERT_EQ(objects->size(), 1u);
    Install(objects->front());
  }

  // The smallest valid job, changed by a merge patch.
  json Job(const std::string& patch = "{}", const std::string& name = "job") const {
    json job = json::parse(R"({
      "spec": {
        "elastic": {"maxLearners": 8},
        "training": {"globalBatchSize": 256, "logicalShards": 32},
        "checkpoint": {"volume": {"persistentVolumeClaim": {"claimName": "checkpoints"}}},
        "template": {"spec": {"containers": [{"name": "learner", "image": "example/learner"}]}}
      }
    })");
    job["metadata"] = Meta(name);
    job.merge_patch(json::parse(patch));
    return job;
  }

  std::string Refusal(const json& job) { return ApiServerTest::Refusal(kJobs, job); }

  std::string RefusalOfChange(const std::string& name, const std::string& patch) {
    return ApiServerTest::RefusalOfChange(kJobs, Key(name), json::parse(patch));
  }

  json Store(const json& job) {
    const auto made = client().Create(kJobs, job);
    if (!made) {
      ADD_FAILURE() << made.error();
      return json();
    }
    return *made;
  }
};

TEST_F(JobDefinitionTest, DefaultsAreFilledIn) {
  const json spec = Store(Job()).at("spec");
  EXPECT_EQ(spec.at("queue"), "default");
  EXPECT_EQ(spec.at("suspend"), false);
  EXPECT_EQ(spec.at("elastic"),
            json::parse(R"({"minLearners": 1, "maxLearners": 8, "gpusPerLearner": 1})"));
  EXPECT_EQ(spec.at("training"), json::parse(R"({"globalBatchSize": 256, "logicalShards": 32,
                                                 "reproducibility": "Bitwise", "seed": 0})"));
  EXPECT_EQ(spec.at("checkpoint").at("everySteps"), 200);
  EXPECT_EQ(spec.at("checkpoint").at("everySeconds"), 300);
  EXPECT_EQ(spec.at("checkpoint").at("keep"), 3);
  EXPECT_EQ(spec.at("resize"), json::parse(R"({"gracePeriodSeconds": 60, "minRuntimeSeconds": 0})"))
      << "the cooldown depends on its queue";
  EXPECT_EQ(spec.at("failurePolicy"),
            json::parse(R"({"maxFailures": 10, "permanentExitCodes": [2]})"));
  EXPECT_FALSE(spec.contains("priority")) << "its queue has the default";
  // No defaults: the operator's flags apply to these fields.
  EXPECT_FALSE(spec.contains("startTimeoutSeconds"));
  EXPECT_FALSE(spec.contains("ttlSecondsAfterFinished"));
  EXPECT_EQ(spec.at("stepTimeoutSeconds"), 1800);
  EXPECT_EQ(spec.at("placement"), "Pack");
}

TEST_F(JobDefinitionTest, GoodJobsAreTaken) {
  const struct {
    const char* what;
    const char* patch;
  } cases[] = {
      {"the smallest", "{}"},
      {"the largest",
       R"({"spec": {"priority": 10000, "elastic": {"minLearners": 1024, "maxLearners": 1024, "minEfficiency": 1},
                    "training": {"globalBatchSize": 16777216, "logicalShards": 4096, "seed": 9007199254740991},
                    "checkpoint": {"everySteps": 1000000000, "everySeconds": 86400, "keep": 1000},
                    "resize": {"gracePeriodSeconds": 3585, "minRuntimeSeconds": 86400, "cooldownSeconds": 3600},
                    "failurePolicy": {"maxFailures": 1000, "permanentExitCodes": [1, 255]}}})"},
      {"all at their least",
       R"({"spec": {"priority": 1, "elastic": {"maxLearners": 1, "minEfficiency": 0}, "training": {"globalBatchSize": 1, "logicalShards": 1},
                    "checkpoint": {"everySteps": 1, "everySeconds": 1, "keep": 1},
                    "resize": {"gracePeriodSeconds": 1, "cooldownSeconds": 0},
                    "failurePolicy": {"maxFailures": 0, "permanentExitCodes": []}}})"},
      {"two decimals", R"({"spec": {"elastic": {"minEfficiency": 0.29}}})"},
      {"another queue", R"({"spec": {"queue": "team-a"}})"},
      {"a batch that grows",
       R"({"spec": {"training": {"batch": {"mode": "FromState", "maxBatchSize": 512}}}})"},
      {"a batch that is constant", R"({"spec": {"training": {"batch": {}}}})"},
      {"shards left to the operator", R"({"spec": {"training": {"logicalShards": null}}})"},
      {"a host path", R"({"spec": {"checkpoint": {"volume": {"persistentVolumeClaim": null,
                          "hostPath": {"path": "/mnt/shared", "type": "DirectoryOrCreate"}}}}})"},
      {"NFS", R"({"spec": {"checkpoint": {"volume": {"persistentVolumeClaim": null,
                          "nfs": {"server": "files", "path": "/export"}}}}})"},
      {"one that continues from another job's checkpoint",
       R"({"spec": {"checkpoint": {"resumeFrom": {"jobUid": "0a1b2c3d-1111-2222-3333-444455556666"}}}})"},
      {"the same, by a path",
       R"({"spec": {"checkpoint": {"resumeFrom": {"path": "/archive/digits"}}}})"},
      {"a template with more in it",
       R"({"spec": {"template": {"metadata": {"labels": {"team": "a"}},
             "spec": {"restartPolicy": "Never", "nodeSelector": {"gpu": "a100"}, "terminationGracePeriodSeconds": 5,
                      "containers": [{"name": "sidecar", "image": "x"},
                                     {"name": "learner", "image": "y", "resources": {"limits": {"cpu": "1"}}}]}}}})"},
      {"quantities of all kinds",
       R"({"spec": {"template": {"spec": {"overhead": {"cpu": 0.25}, "containers": [{"name": "learner", "resources":
            {"requests": {"cpu": "500m", "memory": "1.5Gi", "ephemeral-storage": "1e9"},
             "limits": {"cpu": 2, "memory": 17179869184, "nvidia.com/gpu": "1"}, "claims": []}}]}}}})"},
      {"where learners may run",
       R"({"spec": {"template": {"spec": {"nodeSelector": {"gpu": "true"}, "tolerations": [{"operator": "Exists"},
            {"key": "a", "effect": "NoExecute", "tolerationSeconds": 5}],
            "affinity": {"podAntiAffinity": {}, "nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution":
              {"nodeSelectorTerms": [{"matchExpressions": [{"key": "a", "operator": "In", "values": ["b"]}]}]}}}}}}})"},
  };
  for (const auto& each : cases) EXPECT_EQ(Refusal(Job(each.patch)), "") << each.what;
}

struct Bad {
  const char* patch;
  std::vector<std::string> says;  // the field and the remedy
};

TEST_F(JobDefinitionTest, BadJobsAreRefusedWithTheFieldNamed) {
  const Bad cases[] = {
      {R"({"spec": null})", {"spec: Required value"}},
      {R"({"spec": {"elastic": null}})", {"spec.elastic: Required value"}},
      {R"({"spec": {"elastic": {"maxLearners": null}}})",
       {"spec.elastic.maxLearners: Required value"}},
      {R"({"spec": {"elastic": {"maxLearners": "8"}}})",
       {"spec.elastic.maxLearners", "must be of type integer"}},
      {R"({"spec": {"elastic": {"maxLearners": 1.5}}})",
       {"spec.elastic.maxLearners", "must be of type integer"}},
      {R"({"spec": {"elastic": {"maxLearners": 0}}})",
       {"spec.elastic.maxLearners", "greater than or equal to 1"}},
      {R"({"spec": {"elastic": {"maxLearners": 1025}}})",
       {"spec.elastic.maxLearners", "less than or equal to 1024"}},
      {R"({"spec": {"elastic": {"minLearners": 0}}})",
       {"spec.elastic.minLearners", "greater than or equal to 1"}},
      {R"({"spec": {"elastic": {"minLearners": 9}}})",
       {"spec.elastic.minLearners", "must not be greater than maxLearners",
        "lower it, or raise maxLearners"}},
      {R"({"spec": {"elastic": {"gpusPerLearner": 0}}})",
       {"spec.elastic.gpusPerLearner", "greater than or equal to 1"}},
      {R"({"spec": {"elastic": {"gpusPerLearner": 17}}})",
       {"spec.elastic.gpusPerLearner", "less than or equal to 16"}},
      {R"({"spec": {"queue": ""}})", {"spec.queue", "should match"}},
      {R"({"spec": {"queue": "Team_A"}})", {"spec.queue", "should match"}},
      {R"({"spec": {"queue": "a-very-long-name-of-a-queue-which-does-not-fit-into-63-characters"}})",
       {"spec.queue", "63"}},
      {R"({"spec": {"priority": 0}})", {"spec.priority", "greater than or equal to 1"}},
      {R"({"spec": {"priority": 10001}})", {"spec.priority", "less than or equal to 10000"}},
      {R"({"spec": {"priority": "high"}})", {"spec.priority", "must be of type integer"}},
      {R"({"spec": {"suspend": "yes"}})", {"spec.suspend", "must be of type boolean"}},
      {R"({"spec": {"training": null}})", {"spec.training: Required value"}},
      {R"({"spec": {"training": {"globalBatchSize": null}}})",
       {"spec.training.globalBatchSize: Required value"}},
      {R"({"spec": {"training": {"globalBatchSize": 0}}})",
       {"spec.training.globalBatchSize", "greater than or equal to 1"}},
      {R"({"spec": {"training": {"globalBatchSize": 16777217, "logicalShards": 1}}})",
       {"spec.training.globalBatchSize", "less than or equal to 16777216"}},
      {R"({"spec": {"training": {"globalBatchSize": 250}}})",
       {"spec.training.globalBatchSize", "must be divisible by logicalShards",
        "change one of them"}},
      {R"({"spec": {"training": {"globalBatchSize": 252, "logicalShards": null}}})",
       {"spec.training.globalBatchSize",
        "divisible by a power of two of at least elastic.maxLearners"}},
      {R"({"spec": {"training": {"logicalShards": 0}}})",
       {"spec.training.logicalShards", "greater than or equal to 1"}},
      {R"({"spec": {"training": {"logicalShards": 24, "globalBatchSize": 240}}})",
       {"spec.training.logicalShards", "must be a power of two, for example 32"}},
      {R"({"spec": {"training": {"logicalShards": 8192, "globalBatchSize": 8192}}})",
       {"spec.training.logicalShards", "less than or equal to 4096"}},
      {R"({"spec": {"training": {"logicalShards": 4}}})",
       {"spec.training.logicalShards", "at least elastic.maxLearners x elastic.gpusPerLearner",
        "raise it, or lower"}},
      {R"({"spec": {"training": {"reproducibility": "Exact"}}})",
       {"spec.training.reproducibility", "must be 'Bitwise' or 'Statistical'"}},
      {R"({"spec": {"training": {"batch": {"mode": "Recorded"}}}})",
       {"spec.training.batch.mode", "must be 'Constant' or 'FromState'"}},
      {R"({"spec": {"training": {"batch": {"mode": "FromState"}}}})",
       {"spec.training.batch", "maxBatchSize must be set with mode FromState"}},
      {R"({"spec": {"training": {"batch": {"maxBatchSize": 512}}}})",
       {"spec.training.batch", "maxBatchSize must be set with mode FromState"}},
      {R"({"spec": {"training": {"seed": -1}}})",
       {"spec.training.seed", "greater than or equal to 0"}},
      {R"({"spec": {"training": {"seed": 9007199254740993}}})",
       {"spec.training.seed", "less than or equal to"}},
      {R"({"spec": {"checkpoint": null}})", {"spec.checkpoint: Required value"}},
      {R"({"spec": {"checkpoint": {"volume": null}}})", {"spec.checkpoint.volume: Required value"}},
      {R"({"spec": {"checkpoint": {"volume": {"persistentVolumeClaim": null, "emptyDir": {}}}}})",
       {"spec.checkpoint.volume", "exactly one of persistentVolumeClaim, hostPath and nfs"}},
      {R"({"spec": {"checkpoint": {"volume": {"hostPath": {"path": "/x"}}}}})",
       {"spec.checkpoint.volume", "exactly one of"}},
      {R"({"spec": {"checkpoint": {"resumeFrom": {}}}})",
       {"spec.checkpoint.resumeFrom", "exactly one of jobUid and path"}},
      {R"({"spec": {"checkpoint": {"resumeFrom": {"jobUid": "digits"}}}})",
       {"spec.checkpoint.resumeFrom.jobUid", "should match"}},
      {R"({"spec": {"checkpoint": {"volume": {"persistentVolumeClaim": {"claimName": ""}}}}})",
       {"spec.checkpoint.volume.persistentVolumeClaim.claimName", "at least 1 chars long"}},
      {R"({"spec": {"checkpoint": {"volume": {"persistentVolumeClaim": null, "hostPath": {"path": "here"}}}}})",
       {"spec.checkpoint.volume.hostPath.path", "should match '^/'"}},
      {R"({"spec": {"checkpoint": {"volume": {"persistentVolumeClaim": null, "hostPath": {"path": "/x", "type": "File"}}}}})",
       {"spec.checkpoint.volume.hostPath.type", "Unsupported value"}},
      {R"({"spec": {"checkpoint": {"volume": {"persistentVolumeClaim": null, "nfs": {"server": "x"}}}}})",
       {"spec.checkpoint.volume.nfs.path: Required value"}},
      {R"({"spec": {"checkpoint": {"everySteps": 0}}})",
       {"spec.checkpoint.everySteps", "greater than or equal to 1"}},
      {R"({"spec": {"elastic": {"minEfficiency": 1.01}}})",
       {"spec.elastic.minEfficiency", "less than or equal to 1"}},
      {R"({"spec": {"elastic": {"minEfficiency": 0.555}}})",
       {"spec.elastic.minEfficiency", "at most two decimals, for example 0.5"}},
      {R"({"spec": {"checkpoint": {"everySeconds": 86401}}})",
       {"spec.checkpoint.everySeconds", "less than or equal to 86400"}},
      {R"({"spec": {"checkpoint": {"keep": 0}}})",
       {"spec.checkpoint.keep", "greater than or equal to 1"}},
      {R"({"spec": {"resize": {"gracePeriodSeconds": 0}}})",
       {"spec.resize.gracePeriodSeconds", "greater than or equal to 1"}},
      {R"({"spec": {"resize": {"gracePeriodSeconds": 3586}}})",
       {"spec.resize.gracePeriodSeconds", "less than or equal to 3585"}},
      {R"({"spec": {"resize": {"minRuntimeSeconds": -1}}})",
       {"spec.resize.minRuntimeSeconds", "greater than or equal to 0"}},
      {R"({"spec": {"resize": {"cooldownSeconds": 3601}}})",
       {"spec.resize.cooldownSeconds", "less than or equal to 3600"}},
      {R"({"spec": {"startTimeoutSeconds": 9}})",
       {"spec.startTimeoutSeconds", "greater than or equal to 10"}},
      {R"({"spec": {"startTimeoutSeconds": 86401}})",
       {"spec.startTimeoutSeconds", "less than or equal to 86400"}},
      {R"({"spec": {"placement": "Scatter"}})", {"spec.placement", "\"Pack\", \"Spread\""}},
      {R"({"spec": {"stepTimeoutSeconds": 9}})",
       {"spec.stepTimeoutSeconds", "greater than or equal to 10"}},
      {R"({"spec": {"stepTimeoutSeconds": 86401}})",
       {"spec.stepTimeoutSeconds", "less than or equal to 86400"}},
      {R"({"spec": {"activeDeadlineSeconds": 0}})",
       {"spec.activeDeadlineSeconds", "greater than or equal to 1"}},
      {R"({"spec": {"ttlSecondsAfterFinished": -1}})",
       {"spec.ttlSecondsAfterFinished", "greater than or equal to 0"}},
      {R"({"spec": {"failurePolicy": {"maxFailures": -1}}})",
       {"spec.failurePolicy.maxFailures", "greater than or equal to 0"}},
      {R"({"spec": {"failurePolicy": {"permanentExitCodes": [0]}}})",
       {"spec.failurePolicy.permanentExitCodes[0]", "greater than or equal to 1"}},
      {R"({"spec": {"failurePolicy": {"permanentExitCodes": [256]}}})",
       {"spec.failurePolicy.permanentExitCodes[0]", "less than or equal to 255"}},
      {R"({"spec": {"failurePolicy": {"permanentExitCodes": [3, 3]}}})",
       {"spec.failurePolicy.permanentExitCodes[1]", "Duplicate value"}},
      {R"({"spec": {"template": null}})", {"spec.template: Required value"}},
      {R"({"spec": {"template": {"spec": null}}})", {"spec.template.spec: Required value"}},
      {R"({"spec": {"template": {"spec": {"containers": []}}}})",
       {"spec.template.spec.containers"}},
      {R"({"spec": {"template": {"spec": {"containers": [{"name": "trainer", "image": "x"}]}}}})",
       {"spec.template.spec.containers", "must have one named 'learner'"}},
      {R"({"spec": {"template": {"spec": {"containers": [{"image": "x"}]}}}})",
       {"spec.template.spec.containers[0].name: Required value"}},
      {R"({"spec": {"template": {"spec": {"containers": [{"name": "learner"}, {"name": "learner"}]}}}})",
       {"spec.template.spec.containers[1]", "Duplicate value"}},
      {R"({"spec": {"template": {"spec": {"nodeName": "n1"}}}})",
       {"spec.template.spec.nodeName", "the operator chooses nodes"}},
      {R"({"spec": {"template": {"spec": {"restartPolicy": "Always"}}}})",
       {"spec.template.spec.restartPolicy", "must be 'Never' or absent"}},
      {R"({"spec": {"template": {"spec": {"containers": [{"name": "learner", "resources": {"limits": {"memory": "64GB"}}}]}}}})",
       {"spec.template.spec.containers[0].resources.limits.memory", "64GB", "should match"}},
      {R"({"spec": {"template": {"spec": {"containers": [{"name": "learner", "resources": {"requests": {"cpu": -1}}}]}}}})",
       {"spec.template.spec.containers[0].resources.requests.cpu", "greater than or equal to 0"}},
      {R"({"spec": {"template": {"spec": {"containers": [{"name": "learner", "resources": {"requests": {"cpu": "4 cores"}}}]}}}})",
       {"spec.template.spec.containers[0].resources.requests.cpu", "4 cores"}},
      {R"({"spec": {"template": {"spec": {"initContainers": [{"name": "x", "resources": {"limits": {"cpu": "0e400"}}}]}}}})",
       {"spec.template.spec.initContainers[0].resources.limits.cpu", "should match"}},
      {R"({"spec": {"template": {"spec": {"nodeSelector": {"gpu": true}}}}})",
       {"spec.template.spec.nodeSelector.gpu", "must be of type string"}},
      {R"({"spec": {"template": {"spec": {"tolerations": [{"effect": "NoRun"}]}}}})",
       {"spec.template.spec.tolerations[0].effect", "Unsupported value"}},
      {R"({"spec": {"template": {"spec": {"affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution":
            {"nodeSelectorTerms": [{"matchExpressions": [{"key": "a", "operator": "in"}]}]}}}}}}})",
       {"matchExpressions[0].operator", "Unsupported value"}},
      {R"({"metadata": {"name": "7days"}})", {"metadata.name must", "begin with a letter"}},
      {R"({"metadata": {"name": "a.b"}})", {"metadata.name must"}},
  };
  for (const Bad& bad : cases) {
    const std::string refusal = Refusal(Job(bad.patch));
    for (const std::string& part : bad.says) EXPECT_THAT(refusal, HasSubstr(part)) << bad.patch;
  }
}

// Outside the template only fields of the schema are kept. So kubectl, whose validation is strict,
// reports a misspelt field, and it is never silently accepted.
TEST_F(JobDefinitionTest, MisspeltFieldsAreNotKept) {
  const json made =
      Store(Job(R"({"spec": {"prioritty": 7, "elastic": {"maxLearnrs": 3}, "training": {"sed": 1},
      "checkpoint": {"volume": {"hostpath": {}}}, "resize": {"graceSeconds": 1}, "failurePolicy": {"max": 1}}})"));
  EXPECT_EQ(made.at("spec"), Store(Job("{}", "spelt-right")).at("spec"));
}

TEST_F(JobDefinitionTest, AllowsChangesOnlyToMutableFields) {
  Store(Job());
  const char* const allowed[] = {
      R"({"spec": {"priority": 10000}})",
      R"({"spec": {"suspend": true}})",
      R"({"spec": {"elastic": {"minLearners": 4, "maxLearners": 4}}})",
      R"({"spec": {"elastic": {"maxLearners": 40}}})",  // more than the shards: capped, with a
                                                        // reason
      R"({"spec": {"resize": {"cooldownSeconds": 0}}})",
      R"({"spec": {"checkpoint": {"everySteps": 10}}})",
  };
  for (const char* patch : allowed) EXPECT_EQ(RefusalOfChange("job", patch), "") << patch;

  const Bad refused[] = {
      {R"({"spec": {"training": {"seed": 1}}})",
       {"spec.training", "training is immutable", "create a new job"}},
      {R"({"spec": {"training": {"logicalShards": 64}}})",
       {"spec.training", "training is immutable"}},
      {R"({"spec": {"training": {"logicalShards": null}}})",
       {"spec.training", "training is immutable"}},
      {R"({"spec": {"queue": "other"}})",
       {"spec.queue", "queue is immutable while the job may run", "set suspend to true first"}},
      {R"({"spec": {"suspend": true, "queue": "other"}})", {"spec.queue", "queue is immutable"}},
      {R"({"spec": {"elastic": {"gpusPerLearner": 2}}})",
       {"spec.elastic.gpusPerLearner", "gpusPerLearner is immutable", "create a new job"}},
      {R"({"spec": {"template": {"spec": {"containers": [{"name": "learner", "image": "other"}]}}}})",
       {"spec.template", "set suspend to true first"}},
      {R"({"spec": {"template": {"spec": {"hostIPC": true}}}})",
       {"spec.template", "set suspend to true first"}},
      {R"({"spec": {"suspend": true, "template": {"spec": {"hostIPC": true}}}})",
       {"spec.template"}},
      {R"({"spec": {"checkpoint": {"volume": {"persistentVolumeClaim": {"claimName": "other"}}}}})",
       {"spec.checkpoint.volume", "set suspend to true first"}},
  };
  for (const Bad& bad : refused) {
    const std::string refusal = RefusalOfChange("job", bad.patch);
    for (const std::string& part : bad.says) EXPECT_THAT(refusal, HasSubstr(part)) << bad.patch;
  }

  Store(Job(R"({"spec": {"suspend": true}})", "suspended"));
  EXPECT_EQ(RefusalOfChange("suspended", R"({"spec": {"suspend": false, "queue": "other"}})"), "");
  EXPECT_EQ(
      RefusalOfChange("suspended",
                      R"({"spec": {"suspend": false, "template": {"spec": {"hostIPC": true}}}})"),
      "");
  EXPECT_EQ(
      RefusalOfChange(
          "suspended",
          R"({"spec": {"checkpoint": {"volume": {"persistentVolumeClaim": {"claimName": "other"}}}}})"),
      "");
}

TEST_F(JobDefinitionTest, StatusIsWrittenApartAndGuarded) {
  const json made = Store(Job(R"({"status": {"learners": 3}})"));
  EXPECT_FALSE(made.contains("status")) << "only the operator sets the status";
  const auto write = [this](const std::string& status) {
    const auto written = client().Patch(kJobs, Key("job"), {{"status", json::parse(status)}},
                                        {.subresource = "status"});
    return written ? written->at("status").dump() : written.error().message;
  };
  EXPECT_THAT(
      write(
          R"({"phase": "Running", "learners": 3, "desiredLearners": 4, "coordinatorTerm": 2, "loss": 0.5,
                        "training": {"globalBatchSize": 256, "logicalShards": 32, "seed": 0, "reproducibility": "Bitwise"},
                        "failures": {"count": 1, "step": 7, "counted": [3]},
                        "conditions": [{"type": "Running", "status": "True", "reason": "FairShare", "message": "",
                                        "lastTransitionTime": "2026-01-02T03:04:05Z"}]})"),
      HasSubstr("\"learners\":3"));
  EXPECT_THAT(write(R"({"coordinatorTerm": 1})"), HasSubstr("coordinatorTerm must not fall"));
  EXPECT_THAT(write(R"({"training": {"seed": 1}})"), HasSubstr("status.training is frozen"));
  EXPECT_THAT(write(R"({"gpuProduct": "NVIDIA-L4"})"), HasSubstr("NVIDIA-L4"));
  EXPECT_THAT(write(R"({"gpuProduct": "NVIDIA-T4"})"), HasSubstr("gpuProduct cannot be changed"));
  EXPECT_THAT(write(R"({"gpuProduct": null})"), Not(HasSubstr("NVIDIA-L4")));
  EXPECT_THAT(write(R"({"phase": "Suspending", "gpus": 6, "waitingSince": "2026-01-02T03:04:05Z",
                       "share": {"entitledGpus": 4, "demandLearners": 5, "jobsBefore": 0, "limitedBy": "Others"}})"),
              HasSubstr("\"limitedBy\":\"Others\""));
  const std::string evaluation =
      R"({"step": 4, "epoch": 1, "loss": 0.5, "accuracy": 1, "sums": {"samples": 360}})";
  EXPECT_THAT(write(R"({"evaluations": [)" + evaluation + "]}"), HasSubstr("\"samples\":360"));
  std::string many = evaluation;
  for (int more = 0; more < 16; ++more) many += "," + evaluation;
  EXPECT_THAT(write(R"({"evaluations": [)" + many + "]}"), HasSubstr("Too many"));
  EXPECT_THAT(write(R"({"evaluations": [{"step": 1, "sums": {"a": "text"}}]})"),
              HasSubstr("number"));
  EXPECT_THAT(write(R"({"phase": "Dancing"})"), HasSubstr("Unsupported value"));
  EXPECT_THAT(write(R"({"learners": -1})"), HasSubstr("greater than or equal to 0"));
  EXPECT_THAT(
      write(
          R"({"conditions": [{"type": "Running", "status": "Perhaps", "reason": "X", "message": "",
                                        "lastTransitionTime": "2026-01-02T03:04:05Z"}]})"),
      HasSubstr("Unsupported value"));
}

TEST_F(JobDefinitionTest, ScaleSetsTheMaximumAndShowsTheLearners) {
  Store(Job());
  const auto status = client().Patch(
      kJobs, Key("job"), {{"status", {{"learners", 3}, {"selector", "pliant.dev/job=job"}}}},
      {.subresource = "status"});
  ASSERT_TRUE(status) << status.error();
  auto scale = client().Get(kJobs, Key("job"), "scale");
  ASSERT_TRUE(scale) << scale.error();
  EXPECT_EQ(scale->at("spec").at("replicas"), 8);
  EXPECT_EQ(scale->at("status").at("replicas"), 3);
  EXPECT_EQ(scale->at("status").at("selector"), "pliant.dev/job=job");
  ASSERT_TRUE(
      client().Patch(kJobs, Key("job"), {{"spec", {{"replicas", 5}}}}, {.subresource = "scale"}));
  EXPECT_EQ(client().Get(kJobs, Key("job"))->at("spec").at("elastic").at("maxLearners"), 5);
  EXPECT_FALSE(
      client().Patch(kJobs, Key("job"), {{"spec", {{"replicas", 0}}}}, {.subresource = "scale"}))
      << "a job cannot be scaled to 0; it must be suspended";
}

TEST_F(JobDefinitionTest, TheExamplesAreGoodJobs) {
  for (const char* file : {"demo/training-1.yaml", "demo/training-2.yaml", "examples/digits.yaml",
                           "examples/own-program.yaml", "examples/cifar10/job.yaml"}) {
    SCOPED_TRACE(file);
    const auto objects = LoadYamlObjects(std::string(PLIANT_SOURCE_DIR "/manifests/") + file);
    ASSERT_TRUE(objects) << objects.error();
    json job = objects->front();
    ASSERT_EQ(job.at("kind"), "ElasticTrainingJob");
    job["metadata"]["namespace"] = ns();
    EXPECT_EQ(Refusal(job), "");
  }
}

std::string Text(const std::string& file) {
  std::ifstream in(PLIANT_SOURCE_DIR "/" + file);
  return {std::istreambuf_iterator<char>(in), {}};
}

// manifests/render generates both files.
TEST(DerivedFiles, TheChartHoldsTheSameDefinitions) {
  for (const char* plural : {"elastictrainingjobs", "gpupools", "trainingqueues"}) {
    const std::string name = std::string("/pliant.dev_") + plural + ".yaml";
    const std::string source = Text("crds" + name);
    ASSERT_FALSE(source.empty());
    EXPECT_EQ(Text("helm/pliant/files/crds" + name), source) << "run manifests/render";
    EXPECT_THAT(Text("manifests/install.yaml"), HasSubstr(source)) << "run manifests/render";
  }
}

}  // namespace
}  // namespace pliant::kube
