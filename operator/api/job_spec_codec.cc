#include <array>
#include <cmath>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/format.h"
#include "operator/api/enum_field.h"
#include "operator/api/job_codec.h"
#include "operator/api/spec_and_status.h"

namespace pliant::api {
namespace {

constexpr std::size_t kMaxTemplateBytes = 512 * 1024;
constexpr std::size_t kMaxVolumeBytes = 16 * 1024;

// Whether a field with two values has the second one; the first one is the default.
bool ReadIsSecond(Fields& fields, const char* name, const std::string& first,
                  const std::string& second) {
  const std::string value = fields.String(name, first);
  if (value == second) return true;
  if (value != first) fields.Wrong(name, Format("neither {} nor {}", first, second));
  return false;
}

void ReadElastic(Fields& fields, Elastic& elastic) {
  elastic.min_learners = fields.Int("minLearners", 1, 1, kMaxLearners);
  elastic.max_learners = fields.Int("maxLearners", 1, 1, kMaxLearners);
  elastic.gpus_per_learner = fields.Int("gpusPerLearner", 1, 1, kMaxGpusPerLearner);
  if (elastic.min_learners > elastic.max_learners) {
    fields.Wrong("minLearners", "greater than maxLearners");
  }
  if (const auto efficiency = fields.OptionalNumber("minEfficiency")) {
    const double percent = std::round(*efficiency * 100);
    if (!(percent >= 0 && percent <= 100) || std::abs(percent - *efficiency * 100) > 1e-6) {
      return fields.Wrong("minEfficiency",
                          "not a number from 0 to 1 with at most two decimals, for example 0.5");
    }
    elastic.min_efficiency = static_cast<int>(percent);
  }
}

void ReadTraining(Fields& fields, TrainingSpec& training) {
  training.global_batch_size = fields.Long("globalBatchSize", 0, 1, kMaxBatchSize);
  if (training.global_batch_size == 0) fields.Wrong("globalBatchSize", "missing");
  if (const auto shards = fields.OptionalInt("logicalShards", 1, kMaxLogicalShards)) {
    training.logical_shards = static_cast<int>(*shards);
    if ((*shards & (*shards - 1)) != 0) fields.Wrong("logicalShards", "not a power of two");
  }
  training.reproducibility = ReadReproducibility(fields);
  training.seed = fields.Long("seed", 0, 0, std::int64_t{1} << 53);
  training.max_batch_size = ReadMaxBatchSize(fields);
}

void ReadCheckpoint(Fields& fields, CheckpointSpec& checkpoint) {
  checkpoint.volume_json = fields.Raw("volume", kMaxVolumeBytes);
  if (checkpoint.volume_json.empty()) fields.Wrong("volume", "missing");
  checkpoint.every_steps = fields.Int("everySteps", 200, 1, 1'000'000'000);
  checkpoint.every_seconds = fields.Int("everySeconds", 300, 1, 86400);
  checkpoint.keep = fields.Int("keep", 3, 1, 1000);
  fields.Object("resumeFrom", [&](Fields& source) {
    const std::string uid = source.String("jobUid", "", 36);
    const std::string path = source.String("path", "", 4096);
    if (uid.empty() == path.empty())
      source.Wrong("jobUid", "exactly one of jobUid and path must be set");
    checkpoint.resume_from = uid.empty() ? path : uid;
  });
}

void ReadResize(Fields& fields, JobSpec& spec) {
  ResizeSpec& resize = spec.resize;
  resize.grace_period = std::chrono::seconds(fields.Int("gracePeriodSeconds", 60, 1, 3585));
  resize.min_runtime = std::chrono::seconds(fields.Int("minRuntimeSeconds", 0, 0, 86400));
  if (const auto asked = fields.OptionalInt("cooldownSeconds", 0, 3600)) {
    spec.cooldown_asked = resize.cooldown = std::chrono::seconds(*asked);
  }
}

std::optional<std::chrono::seconds> OptionalSeconds(Fields& fields, const char* name,
                                                    std::int64_t least) {
  const auto value = fields.OptionalInt(name, least, kMaxSeconds);
  return value ? std::optional(std::chrono::seconds(*value)) : std::nullopt;
}

}  // namespace

std::optional<std::int64_t> ReadMaxBatchSize(Fields& training) {
  std::optional<std::int64_t> most;
  training.Object("batch", [&](Fields& batch) {
    const bool from_state = ReadIsSecond(batch, "mode", "Constant", "FromState");
    most = batch.OptionalInt("maxBatchSize", 1, kMaxBatchSize);
    if (most.has_value() != from_state) {
      batch.Wrong("maxBatchSize", "must be set with mode FromState, and only then");
      most.reset();
    }
  });
  return most;
}

Reproducibility ReadReproducibility(Fields& fields) {
  return ReadIsSecond(fields, "reproducibility", "Bitwise", "Statistical")
             ? Reproducibility::kStatistical
             : Reproducibility::kBitwise;
}

void ReadSpec(Fields& fields, const JobSettings& settings, JobSpec& spec) {
  spec.queue = fields.String("queue", std::string(planner::kBuiltInQueue), 63);
  if (const auto asked = fields.OptionalInt("priority", 1, kMaxPriority)) {
    spec.priority_asked = spec.priority = static_cast<int>(*asked);
  }
  spec.suspend = fields.Bool("suspend");
  for (const char* required : {"elastic", "training", "checkpoint", "template"}) {
    if (!fields.Has(required)) fields.Wrong(required, "missing");
  }
  fields.Object("elastic", [&](Fields& f) { ReadElastic(f, spec.elastic); });
  fields.Object("training", [&](Fields& f) { ReadTraining(f, spec.training); });
  fields.Object("checkpoint", [&](Fields& f) { ReadCheckpoint(f, spec.checkpoint); });
  fields.Object("resize", [&](Fields& f) { ReadResize(f, spec); });
  using enum planner::PlacementPolicy;
  spec.placement = ReadEnum(fields, "placement", kPack, std::array{kPack, kSpread});
  spec.exchange_over_nccl = !ReadIsSecond(fields, "exchange", "Auto", "Frames");
  fields.Object("failurePolicy", [&](Fields& f) {
    spec.failure_policy.max_failures = f.Int("maxFailures", 10, 0, 1000);
    spec.failure_policy.permanent_exit_codes = f.Ints("permanentExitCodes", 1, 255, 32);
  });
  const auto start_timeout = fields.OptionalInt("startTimeoutSeconds", 10, 86400);
  spec.start_timeout =
      start_timeout ? std::chrono::seconds(*start_timeout) : settings.start_timeout;
  spec.step_timeout = std::chrono::seconds(fields.Int("stepTimeoutSeconds", 1800, 10, 86400));
  spec.active_deadline = OptionalSeconds(fields, "activeDeadlineSeconds", 1);
  spec.ttl_after_finished = OptionalSeconds(fields, "ttlSecondsAfterFinished", 0);
  if (!spec.ttl_after_finished) spec.ttl_after_finished = settings.ttl_after_finished;
  std::string text = fields.Raw("template", kMaxTemplateBytes);
  if (const nlohmann::json* pod_template = fields.Find("template"); !text.empty()) {
    spec.learner_template = ReadLearnerTemplate(
        *pod_template, std::move(text), spec.checkpoint.volume_json, spec.elastic.gpus_per_learner);
  }
}

Result<ElasticTrainingJob> DecodeJob(const nlohmann::json& object, const JobSettings& settings) {
  ElasticTrainingJob job;
  ASSIGN_OR_RETURN(job.meta, DecodeMeta(object, "pliant.dev/"));
  UnreadableHalves unreadable = ReadSpecAndStatus(
      object, [&](Fields& fields) { ReadSpec(fields, settings, job.spec); },
      [&](Fields& fields) { ReadStatus(fields, job.status); });
  job.unreadable = std::move(unreadable.spec);
  job.unreadable_status = std::move(unreadable.status);
  return job;
}

}  // namespace pliant::api
