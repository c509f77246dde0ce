#include <limits>
#include <nlohmann/json.hpp>

#include <gtest/gtest.h>

#include "operator/api/elastic_training_job.h"

namespace pliant::api {
namespace {

using nlohmann::json;
using std::chrono::seconds;

json Minimal() {
  return json::parse(R"({
    "metadata": {"name": "digits", "namespace": "team-a", "uid": "1a2b3c", "resourceVersion": "9", "generation": 2},
    "spec": {"elastic": {"maxLearners": 8}, "training": {"globalBatchSize": 256},
             "checkpoint": {"volume": {"hostPath": {"path": "/data"}}},
             "template": {"spec": {"containers": [{"name": "learner", "image": "x"}]}}}})");
}

TEST(JobCodec, FillsInDefaults) {
  const Result<ElasticTrainingJob> job = DecodeJob(Minimal(), {});
  ASSERT_TRUE(job) << job.error();
  EXPECT_EQ(job->meta.generation, 2);
  EXPECT_EQ(job->spec.queue, "default");
  EXPECT_EQ(job->spec.priority, 5000);
  EXPECT_EQ(job->spec.priority_asked, std::nullopt);
  EXPECT_EQ(job->spec.elastic, (Elastic{.min_learners = 1, .max_learners = 8}));
  EXPECT_EQ(job->spec.training.logical_shards, std::nullopt);
  EXPECT_EQ(job->spec.checkpoint.volume_json, R"({"hostPath":{"path":"/data"}})");
  EXPECT_EQ(job->spec.resize.grace_period, seconds(60));
  EXPECT_EQ(job->spec.resize.cooldown, seconds(30));
  EXPECT_EQ(job->spec.cooldown_asked, std::nullopt);
  EXPECT_EQ(job->spec.failure_policy.max_failures, 10);
  EXPECT_EQ(job->spec.limited, "");
  EXPECT_EQ(job->spec.start_timeout, seconds(300));
  EXPECT_EQ(job->spec.step_timeout, seconds(1800));
  EXPECT_TRUE(job->spec.exchange_over_nccl);
  EXPECT_EQ(job->spec.active_deadline, std::nullopt);
  EXPECT_EQ(job->spec.ttl_after_finished, std::nullopt);
  EXPECT_EQ(job->status, JobStatus{});
}

TEST(JobCodec, ABatchMayGrow) {
  json object = Minimal();
  EXPECT_EQ(DecodeJob(object, {})->spec.training.max_batch_size, std::nullopt);
  object["spec"]["training"]["batch"] = {{"mode", "Constant"}};
  EXPECT_EQ(DecodeJob(object, {})->spec.training.max_batch_size, std::nullopt);
  object["spec"]["training"]["batch"] = {{"mode", "FromState"}, {"maxBatchSize", 4096}};
  EXPECT_EQ(DecodeJob(object, {})->spec.training.max_batch_size, 4096);
}

// Whether a job asks for 5000 or for nothing matters to its queue.
TEST(JobCodec, KeepsWhatPriorityAJobAsksFor) {
  json object = Minimal();
  object["spec"]["priority"] = 5000;
  const Result<ElasticTrainingJob> job = DecodeJob(object, {});
  ASSERT_TRUE(job) << job.error();
  EXPECT_EQ(job->spec.priority, 5000);
  EXPECT_EQ(job->spec.priority_asked, 5000);
}

TEST(JobCodec, FieldsThatAJobOmitsComeFromTheAdministratorsSettings) {
  const JobSettings settings{.start_timeout = seconds(900), .ttl_after_finished = seconds(3600)};
  json object = Minimal();
  Result<ElasticTrainingJob> job = DecodeJob(object, settings);
  ASSERT_TRUE(job) << job.error();
  EXPECT_EQ(job->spec.start_timeout, seconds(900));
  EXPECT_EQ(job->spec.ttl_after_finished, seconds(3600));
  // As stored by an earlier CRD, which filled in 120.
  object["spec"].update({{"startTimeoutSeconds", 120}, {"ttlSecondsAfterFinished", 0}});
  job = DecodeJob(object, settings);
  ASSERT_TRUE(job) << job.error();
  EXPECT_EQ(job->spec.start_timeout, seconds(120));
  EXPECT_EQ(job->spec.ttl_after_finished, seconds(0));
}

// Such jobs exist, because the CRD allows these values.
TEST(JobCodec, ReadsLimitsInTimeAndTheExchange) {
  json object = Minimal();
  object["spec"]["startTimeoutSeconds"] = 600;
  object["spec"]["stepTimeoutSeconds"] = 7200;
  object["spec"]["exchange"] = "Frames";
  object["spec"]["activeDeadlineSeconds"] = 3600;
  object["spec"]["ttlSecondsAfterFinished"] = 0;
  const Result<ElasticTrainingJob> job = DecodeJob(object, {});
  ASSERT_TRUE(job) << job.error();
  EXPECT_EQ(job->spec.start_timeout, seconds(600));
  EXPECT_EQ(job->spec.step_timeout, seconds(7200));
  EXPECT_FALSE(job->spec.exchange_over_nccl);
  EXPECT_EQ(job->spec.active_deadline, seconds(3600));
  EXPECT_EQ(job->spec.ttl_after_finished, seconds(0));
}

TEST(JobCodec, ReadsAMinimumEfficiencyInPercent) {
  const std::pair<json, int> kCases[] = {{nullptr, 0}, {0, 0},    {0.01, 1}, {0.29, 29},
                                         {0.57, 57},   {0.5, 50}, {1, 100}};
  for (const auto& [value, percent] : kCases) {
    json object = Minimal();
    object["spec"]["elastic"]["minEfficiency"] = value;
    const Result<ElasticTrainingJob> job = DecodeJob(object, {});
    ASSERT_TRUE(job) << job.error();
    EXPECT_EQ(job->spec.elastic.min_efficiency, percent);
    EXPECT_EQ(job->unreadable, "");
  }
}

TEST(JobCodec, NamesTheFieldThatIsWrong) {
  const struct {
    const char* path;
    json value;
    const char* message;
  } kCases[] = {
      {"/spec", nullptr, "spec: missing"},
      {"/spec", 1, "spec: not an object"},
      {"/spec/template", nullptr, "spec.template: missing"},
      {"/spec/priority", 0, "spec.priority: not a whole number from 1 to 10000"},
      {"/spec/priority", 1.5, "spec.priority: not a whole number from 1 to 10000"},
      {"/spec/priority", std::numeric_limits<std::uint64_t>::max(),
       "spec.priority: not a whole number from 1 to 10000"},
      {"/spec/suspend", "yes", "spec.suspend: neither true nor false"},
      {"/spec/elastic/minLearners", 9, "spec.elastic.minLearners: greater than maxLearners"},
      {"/spec/elastic/minEfficiency", 1.5,
       "spec.elastic.minEfficiency: not a number from 0 to 1 with at most two decimals, for "
       "example 0.5"},
      {"/spec/elastic/minEfficiency", 0.555,
       "spec.elastic.minEfficiency: not a number from 0 to 1 with at most two decimals, for "
       "example 0.5"},
      {"/spec/elastic/minEfficiency", "half", "spec.elastic.minEfficiency: not a number"},
      {"/spec/training/globalBatchSize", nullptr, "spec.training.globalBatchSize: missing"},
      {"/spec/training/logicalShards", 12, "spec.training.logicalShards: not a power of two"},
      {"/spec/training/reproducibility", "Exact",
       "spec.training.reproducibility: neither Bitwise nor Statistical"},
      {"/spec/training/batch",
       {{"mode", "Recorded"}},
       "spec.training.batch.mode: neither Constant nor FromState"},
      {"/spec/training/batch",
       {{"mode", "FromState"}},
       "spec.training.batch.maxBatchSize: must be set with mode FromState, and only then"},
      {"/spec/training/batch",
       {{"maxBatchSize", 512}},
       "spec.training.batch.maxBatchSize: must be set with mode FromState, and only then"},
      {"/spec/placement", "Scatter", "spec.placement: none of Pack, Spread"},
      {"/spec/checkpoint/volume", nullptr, "spec.checkpoint.volume: missing"},
      {"/spec/checkpoint/resumeFrom", json::object(),
       "spec.checkpoint.resumeFrom.jobUid: exactly one of jobUid and path must be set"},
      {"/spec/checkpoint/resumeFrom",
       {{"jobUid", "u"}, {"path", "p"}},
       "spec.checkpoint.resumeFrom.jobUid: exactly one of jobUid and path must be set"},
      {"/spec/failurePolicy",
       {{"permanentExitCodes", {2, 700}}},
       "spec.failurePolicy.permanentExitCodes: has an item that is not a whole number from 1 to "
       "255"},
      {"/spec/startTimeoutSeconds", 9,
       "spec.startTimeoutSeconds: not a whole number from 10 to 86400"},
      {"/spec/exchange", "NCCL", "spec.exchange: neither Auto nor Frames"},
      {"/spec/stepTimeoutSeconds", 86401,
       "spec.stepTimeoutSeconds: not a whole number from 10 to 86400"},
      {"/spec/activeDeadlineSeconds", 0,
       "spec.activeDeadlineSeconds: not a whole number from 1 to 315360000"},
      {"/spec/template",
       {{"x", std::string(600 * 1024, 'x')}},
       "spec.template: larger than 524288 bytes"},
  };
  for (const auto& c : kCases) {
    json object = Minimal();
    object[json::json_pointer(c.path)] = c.value;
    const Result<ElasticTrainingJob> job = DecodeJob(object, {});
    ASSERT_TRUE(job) << job.error();
    EXPECT_EQ(job->unreadable, c.message);
    EXPECT_EQ(job->meta.uid, "1a2b3c");
  }
}

// Recursive functions process the template, one call per level.
TEST(JobCodec, ATemplateIsNestedAHundredLevelsDeepAtMost) {
  for (const int levels : {98, 100, 10'000}) {
    json nested = json::object();
    for (int level = 1; level < levels; ++level) nested = {{"x", std::move(nested)}};
    json object = Minimal();
    object["spec"]["template"] = {{"spec", std::move(nested)}};
    const Result<ElasticTrainingJob> job = DecodeJob(object, {});
    ASSERT_TRUE(job) << job.error();
    EXPECT_EQ(job->unreadable,
              levels < 100 ? "" : "spec.template: nested more than 100 levels deep");
  }
}

// The job must not be lost: its learners run.
TEST(JobCodec, AStatusThatIsNotUnderstoodIsNamed) {
  json object = Minimal();
  object["status"]["nextLearner"] = std::int64_t{1} << 40;
  const Result<ElasticTrainingJob> job = DecodeJob(object, {});
  ASSERT_TRUE(job) << job.error();
  EXPECT_EQ(job->unreadable_status, "status.nextLearner: not a whole number from 0 to 1073741824");
  EXPECT_EQ(job->unreadable, "") << "the spec is another matter";
}

JobStatus FullStatus() {
  return {
      .observed_generation = 3,
      .phase = JobPhase::kResizing,
      .reason = "4 of 8 GPUs",
      .selector = "pliant.dev/job-uid=u",
      .learners = 3,
      .gpus = 6,
      .share = {.desired_learners = 4,
                .entitlement = 4,
                .entitled_gpus = 8,
                .demand_learners = 5,
                .jobs_before = 0,
                .limited_by = "Others",
                .admitted_minimum = 2,
                .start_time = WallTime(seconds(10)),
                .resize_time = WallTime(seconds(20))},
      .waiting = {.since = WallTime(seconds(9)),
                  .attained_gpu_seconds = 900,
                  .estimated = {.start = WallTime(seconds(21)),
                                .completion = WallTime(seconds(29))}},
      .training =
          FrozenTraining{
              .global_batch_size = 256, .logical_shards = 32, .seed = 7, .max_batch_size = 4096},
      .gpu_product = "NVIDIA-L4",
      .pool = "slices",
      .objects = {.coordinator_term = 2,
                  .coordinator_image = "pliant:1",
                  .next_learner = 11,
                  .admitted_template = "0a1b"},
      .progress =
          {.membership_id = "2.5",
           .step = 400,
           .epoch = 16,
           .total_steps = 1200,
           .samples_per_second = 5310.5,
           .speeds =
               {{.learners = 2, .nodes = 1, .samples_per_second = 15, .compute_seconds = 0.25},
                {.learners = 4, .nodes = 2, .samples_per_second = 28, .compute_seconds = 0.5}},
           .loss = 0.03125,
           .accuracy = 0.98,
           .evaluations = {{.step = 200, .epoch = 8, .sums = {}},
                           {.step = 400,
                            .epoch = 16,
                            .loss = 0.0625,
                            .accuracy = 0.98,
                            .sums = {{"samples", 360}, {"entropy", 0.5}}}},
           .parameters_sha256 = "abc",
           .last_checkpoint = SavedCheckpoint{.step = 400, .time = WallTime(seconds(1000))}},
      .resizes = 3,
      .restarts = 1,
      .failures = {.count = 2, .step = 399, .counted = {4, 7}},
      .completion_time = WallTime(seconds(30)),
      .conditions = {{.type = "Admitted",
                      .status = ConditionStatus::kTrue,
                      .reason = "Admitted",
                      .message = "m",
                      .last_transition = WallTime(seconds(5)),
                      .observed_generation = 3}}};
}

TEST(JobCodec, StatusReadsBackAsWritten) {
  for (const JobStatus& status : {FullStatus(), JobStatus{}}) {
    json object = Minimal();
    object.merge_patch({{"status", EncodeStatus(status)}});
    const Result<ElasticTrainingJob> job = DecodeJob(object, {});
    ASSERT_TRUE(job) << job.error();
    EXPECT_EQ(job->status, status);
  }
}

// A merge patch keeps fields that it does not name, so a field without value must be named.
TEST(JobCodec, PatchRemovesWhatHasNoValue) {
  json object = Minimal();
  object.merge_patch({{"status", EncodeStatus(FullStatus())}});
  JobStatus later = FullStatus();
  later.progress.loss.reset();
  later.progress.last_checkpoint.reset();
  later.failures = {};
  later.reason.clear();
  object.merge_patch({{"status", EncodeStatus(later)}});
  const Result<ElasticTrainingJob> job = DecodeJob(object, {});
  ASSERT_TRUE(job) << job.error();
  EXPECT_EQ(job->status, later);
}

TEST(JobCodec, ANumberThatJsonCannotHoldIsLeftOut) {
  JobStatus status;
  status.progress.loss = std::numeric_limits<double>::quiet_NaN();
  EXPECT_TRUE(EncodeStatus(status).at("loss").is_null());
}

// A later phase may mean that the job has ended: it must not be started again.
TEST(JobCodec, AnUnknownPhaseIsNotUnderstood) {
  json object = Minimal();
  object["status"] = {{"phase", "Hibernating"}};
  const Result<ElasticTrainingJob> job = DecodeJob(object, {});
  ASSERT_TRUE(job) << job.error();
  EXPECT_EQ(job->unreadable_status, "status.phase: \"Hibernating\" is not known");
}

void ForEachValue(json& value, const std::function<void(json& value)>& visit) {
  visit(value);
  if (!value.is_structured()) return;
  for (json& item : value) ForEachValue(item, visit);
}

// Whatever another version writes into any field.
TEST(JobCodec, NoStatusMakesAJobDisappear) {
  json full = Minimal();
  full.merge_patch({{"status", EncodeStatus(FullStatus())}});
  const json kOthers[] = {"text", -7, 1e300, true, json::array({1, "a"}), {{"a", {{"b", 1}}}}};
  int understood = 0;
  int not_understood = 0;
  ForEachValue(full["status"], [&](json& value) {
    const json before = value;
    for (const json& other : kOthers) {
      value = other;
      const Result<ElasticTrainingJob> job = DecodeJob(full, {});
      ASSERT_TRUE(job) << full["status"] << job.error();
      EXPECT_EQ(job->unreadable, "");
      ++(job->unreadable_status.empty() ? understood : not_understood);
    }
    value = before;
  });
  EXPECT_GT(understood, 20);
  EXPECT_GT(not_understood, 100);
}

TEST(JobCodec, ARemarkTouchesNothingElse) {
  json status = {{"phase", "Hibernating"}, {"extra", 7}, {"step", 5}};
  JobStatus remark;
  remark.reason = "why";
  status.merge_patch(EncodeRemark(remark));
  EXPECT_EQ(status, json({{"phase", "Hibernating"},
                          {"extra", 7},
                          {"step", 5},
                          {"reason", "why"},
                          {"conditions", json::array()}}));
}

}  // namespace
}  // namespace pliant::api
