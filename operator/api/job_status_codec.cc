#include <cmath>
#include <nlohmann/json.hpp>

#include "operator/api/job_codec.h"

namespace pliant::api {
namespace {

using nlohmann::json;

constexpr JobPhase kPhases[] = {JobPhase::kQueued,    JobPhase::kStarting,    JobPhase::kRunning,
                                JobPhase::kResizing,  JobPhase::kRecovering,  JobPhase::kSuspending,
                                JobPhase::kSuspended, JobPhase::kTerminating, JobPhase::kSucceeded,
                                JobPhase::kFailed};

JobPhase ReadPhase(Fields& status) {
  const std::string text = status.String("phase");
  for (const JobPhase phase : kPhases) {
    if (ToString(phase) == text) return phase;
  }
  if (!text.empty()) status.Wrong("phase", "\"" + text + "\" is not known");
  return JobPhase::kNew;
}

constexpr int kMaxNextLearner = 1 << 30;  // numbering continues from it and must not overflow

int Count(Fields& fields, const char* name) { return fields.Int(name, 0, 0, INT32_MAX); }
std::int64_t LongCount(Fields& fields, const char* name) {
  return fields.Long(name, 0, 0, kMaxCount);
}

json OrNull(const std::string& text) { return text.empty() ? json() : json(text); }
json OrNull(const std::optional<std::int64_t>& number) { return number ? json(*number) : json(); }
json OrNull(const std::optional<WallTime>& time) { return time ? json(FormatTime(*time)) : json(); }
// JSON has no NaN: a diverged loss is left out.
json OrNull(const std::optional<double>& number) {
  return number && std::isfinite(*number) ? json(*number) : json();
}

json EncodeTraining(const FrozenTraining& training) {
  json encoded = {{"globalBatchSize", training.global_batch_size},
                  {"logicalShards", training.logical_shards},
                  {"seed", training.seed},
                  {"reproducibility", ToString(training.reproducibility)}};
  if (training.max_batch_size) {
    encoded["batch"] = {{"mode", "FromState"}, {"maxBatchSize", *training.max_batch_size}};
  }
  return encoded;
}

json EncodeFailures(const FailureCount& failures) {
  if (failures == FailureCount{}) return {};
  return {{"count", failures.count}, {"step", failures.step}, {"counted", failures.counted}};
}

void ReadProgress(Fields& fields, JobStatus& status) {
  status.progress.membership_id = fields.String("membershipId", "", 64);
  if (const int asked = Count(fields, "learnersAsked"); asked > 0)
    status.progress.learners_asked = asked;
  status.progress.step = fields.OptionalInt("step", 0, INT64_MAX);
  status.progress.epoch = fields.OptionalInt("epoch", 0, INT64_MAX);
  status.progress.total_steps = fields.OptionalInt("totalSteps", 0, INT64_MAX);
  status.progress.samples_per_second = fields.OptionalNumber("samplesPerSecond");
  status.progress.loss = fields.OptionalNumber("loss");
  status.progress.accuracy = fields.OptionalNumber("accuracy");
  status.progress.evaluations = ReadEvaluations(fields);
  status.progress.parameters_sha256 = fields.String("parametersSha256", "", 64);
  fields.Object("lastCheckpoint", [&](Fields& checkpoint) {
    status.progress.last_checkpoint =
        SavedCheckpoint{.step = LongCount(checkpoint, "step"),
                        .time = checkpoint.OptionalTime("time").value_or(WallTime{})};
  });
}

}  // namespace

void ReadStatus(Fields& fields, JobStatus& status) {
  status.observed_generation = LongCount(fields, "observedGeneration");
  status.phase = ReadPhase(fields);
  status.reason = fields.String("reason");
  status.selector = fields.String("selector");
  status.learners = Count(fields, "learners");
  status.gpus = LongCount(fields, "gpus");
  status.share.desired_learners = Count(fields, "desiredLearners");
  status.share.entitlement = Count(fields, "entitlement");
  fields.Object("share", [&](Fields& share) {
    if (const int minimum = share.Int("admittedMinimum", 0, 0, kMaxLearners); minimum > 0) {
      status.share.admitted_minimum = minimum;
    }
    status.share.entitled_gpus = LongCount(share, "entitledGpus");
    status.share.demand_learners = Count(share, "demandLearners");
    if (const auto before = share.OptionalInt("jobsBefore", 0, INT32_MAX))
      status.share.jobs_before = static_cast<int>(*before);
    status.share.limited_by = share.String("limitedBy", "", 64);
  });
  fields.Object("training", [&](Fields& training) {
    status.training = FrozenTraining{.global_batch_size = LongCount(training, "globalBatchSize"),
                                     .logical_shards = training.Int("logicalShards", 1, 1, 4096),
                                     .seed = LongCount(training, "seed"),
                                     .reproducibility = ReadReproducibility(training),
                                     .max_batch_size = ReadMaxBatchSize(training)};
  });
  status.gpu_product = fields.String("gpuProduct", "", 63);
  status.pool = fields.String("pool", "", 63);
  status.objects.coordinator_term = LongCount(fields, "coordinatorTerm");
  status.objects.coordinator_image = fields.String("coordinatorImage", "", 1024);
  status.objects.next_learner = fields.Int("nextLearner", 0, 0, kMaxNextLearner);
  status.objects.admitted_template = fields.String("admittedTemplate", "", 64);
  ReadProgress(fields, status);
  status.resizes = LongCount(fields, "resizes");
  status.restarts = LongCount(fields, "restarts");
  fields.Object("failures", [&](Fields& failures) {
    status.failures = {.count = Count(failures, "count"),
                       .step = LongCount(failures, "step"),
                       .counted = failures.Ints("counted", 0, INT32_MAX, 4096)};
  });
  fields.Objects("speeds", kMaxMeasuredSpeeds, [&](Fields& speed) {
    status.progress.speeds.push_back(
        {.learners = speed.Int("learners", 1, 1, kMaxLearners),
         .nodes = speed.Int("nodes", 1, 1, kMaxLearners),
         .samples_per_second = speed.OptionalNumber("samplesPerSecond").value_or(0),
         .compute_seconds = speed.OptionalNumber("computeSeconds").value_or(0)});
  });
  status.waiting.attained_gpu_seconds = LongCount(fields, "attainedGpuSeconds");
  fields.Object("recentService", [&](Fields& recent) {
    const std::int64_t gpu_seconds = LongCount(recent, "gpuSeconds");
    if (const auto time = recent.OptionalTime("time")) {
      status.waiting.recent_service = {.gpu_seconds = gpu_seconds, .time = *time};
    }
  });
  status.waiting.since = fields.OptionalTime("waitingSince");
  status.share.start_time = fields.OptionalTime("startTime");
  status.share.resize_time = fields.OptionalTime("resizeTime");
  status.waiting.estimated.start = fields.OptionalTime("estimatedStartTime");
  status.waiting.estimated.completion = fields.OptionalTime("estimatedCompletionTime");
  status.completion_time = fields.OptionalTime("completionTime");
  status.conditions = ReadConditions(fields);
}

json EncodeSpeeds(const std::vector<MeasuredSpeed>& speeds) {
  if (speeds.empty()) return json();
  json list = json::array();
  for (const MeasuredSpeed& speed : speeds) {
    list.push_back({{"learners", speed.learners},
                    {"nodes", speed.nodes},
                    {"samplesPerSecond", speed.samples_per_second},
                    {"computeSeconds", speed.compute_seconds}});
  }
  return list;
}

json EncodeShare(const JobShare& share) {
  return {{"admittedMinimum", share.admitted_minimum ? json(*share.admitted_minimum) : json()},
          {"entitledGpus", share.entitled_gpus},
          {"demandLearners", share.demand_learners},
          {"jobsBefore", share.jobs_before ? json(*share.jobs_before) : json()},
          {"limitedBy", OrNull(share.limited_by)}};
}

json EncodeRemark(const JobStatus& status) {
  return {{"reason", OrNull(status.reason)}, {"conditions", EncodeConditions(status.conditions)}};
}

json EncodeStatus(const JobStatus& status) {
  json encoded = {
      {"observedGeneration", status.observed_generation},
      {"phase", OrNull(std::string(ToString(status.phase)))},
      {"reason", OrNull(status.reason)},
      {"selector", OrNull(status.selector)},
      {"learners", status.learners},
      {"gpus", status.gpus},
      {"desiredLearners", status.share.desired_learners},
      {"entitlement", status.share.entitlement},
      {"gpuProduct", OrNull(status.gpu_product)},
      {"pool", OrNull(status.pool)},
      {"coordinatorTerm", status.objects.coordinator_term},
      {"coordinatorImage", OrNull(status.objects.coordinator_image)},
      {"nextLearner", status.objects.next_learner},
      {"admittedTemplate", OrNull(status.objects.admitted_template)},
      {"membershipId", OrNull(status.progress.membership_id)},
      {"learnersAsked",
       status.progress.learners_asked ? json(*status.progress.learners_asked) : json()},
      {"step", OrNull(status.progress.step)},
      {"epoch", OrNull(status.progress.epoch)},
      {"totalSteps", OrNull(status.progress.total_steps)},
      {"samplesPerSecond", OrNull(status.progress.samples_per_second)},
      {"loss", OrNull(status.progress.loss)},
      {"accuracy", OrNull(status.progress.accuracy)},
      {"parametersSha256", OrNull(status.progress.parameters_sha256)},
      {"resizes", status.resizes},
      {"restarts", status.restarts},
      {"failures", EncodeFailures(status.failures)},
      {"attainedGpuSeconds", status.waiting.attained_gpu_seconds},
      {"waitingSince", OrNull(status.waiting.since)},
      {"startTime", OrNull(status.share.start_time)},
      {"resizeTime", OrNull(status.share.resize_time)},
      {"estimatedStartTime", OrNull(status.waiting.estimated.start)},
      {"estimatedCompletionTime", OrNull(status.waiting.estimated.completion)},
      {"completionTime", OrNull(status.completion_time)},
      {"conditions", EncodeConditions(status.conditions)},
  };
  encoded["speeds"] = EncodeSpeeds(status.progress.speeds);
  encoded["recentService"] = status.waiting.recent_service
                                 ? json{{"gpuSeconds", status.waiting.recent_service->gpu_seconds},
                                        {"time", FormatTime(status.waiting.recent_service->time)}}
                                 : json();
  encoded["share"] = EncodeShare(status.share);
  encoded["evaluations"] = EncodeEvaluations(status.progress.evaluations);
  if (status.training) encoded["training"] = EncodeTraining(*status.training);
  encoded["lastCheckpoint"] =
      status.progress.last_checkpoint
          ? json{{"step", status.progress.last_checkpoint->step},
                 {"time", FormatTime(status.progress.last_checkpoint->time)}}
          : json();
  return encoded;
}

}  // namespace pliant::api
