#include "operator/controller/lifecycle/admission.h"

#include <algorithm>
#include <bit>
#include <cstdint>

#include "base/default_shards.h"
#include "base/format.h"
#include "base/utf8.h"
#include "operator/controller/objects/learner_pod.h"

namespace pliant::controller {

namespace {

// As in trainer/data/schedule.h: a grown batch may have more shards than a job may begin with.
constexpr int kMaxShardsOfTick = 1 << 16;

// Whether the job still has learners that were made from another template than its current one.
bool HasFormerLearners(const JobView& view) {
  const std::string& theirs = view.job->status.objects.admitted_template;
  return !theirs.empty() && theirs != view.job->spec.learner_template.hash && HasLiveLearners(view);
}

// "; the operator sets or drops these fields itself: metadata.finalizers"; "" if there are none
std::string Without(const api::ElasticTrainingJob& job, const api::FrozenTraining& training) {
  constexpr std::size_t kMaxNamed = 8;
  constexpr std::size_t kMaxName = 80;
  const std::vector<std::string> ignored = IgnoredFields(job, training);
  if (ignored.empty()) return "";
  std::string names;
  for (std::size_t at = 0; at < std::min(ignored.size(), kMaxNamed); ++at)
    names += (at == 0 ? "" : ", ") + CutAtCharacter(ignored[at], kMaxName);
  if (ignored.size() > kMaxNamed) names += Format(" and {} more", ignored.size() - kMaxNamed);
  return Format("; the operator sets or drops these fields itself: {}", names);
}

}  // namespace

Result<api::FrozenTraining> FreezeTraining(const api::JobSpec& spec) {
  const api::TrainingSpec& training = spec.training;
  const std::int64_t gpus = std::int64_t{spec.elastic.max_learners} * spec.elastic.gpus_per_learner;
  const auto batch = static_cast<std::uint64_t>(training.global_batch_size);
  const int shards = training.logical_shards.value_or(
      DefaultLogicalShards(batch, static_cast<std::uint64_t>(gpus)));
  if (training.global_batch_size % shards != 0) {
    return Invalid(
        Format("spec.training.globalBatchSize {} is not a multiple of "
               "logicalShards {}",
               training.global_batch_size, shards));
  }
  if (shards < gpus) {
    return Invalid(
        Format("logicalShards {} is less than maxLearners x gpusPerLearner = {}: "
               "every GPU needs a shard",
               shards, gpus));
  }
  if (const auto most = training.max_batch_size) {
    if (*most < 2 * training.global_batch_size) {
      return Invalid(Format(
          "spec.training.batch.maxBatchSize {} is less than twice globalBatchSize {}, so the "
          "batch could never grow: use at least {}, or the mode Constant",
          *most, training.global_batch_size, 2 * training.global_batch_size));
    }
    if (shards < 2) {
      return Invalid(
          "spec.training.batch.mode FromState needs logicalShards of at least 2: the noise scale "
          "is measured between shards");
    }
    if (training.reproducibility != api::Reproducibility::kBitwise) {
      return Invalid(
          "spec.training.batch.mode FromState needs reproducibility Bitwise: the noise "
          "scale of a Statistical job depends on the number of learners");
    }
  }
  return api::FrozenTraining{.global_batch_size = training.global_batch_size,
                             .logical_shards = shards,
                             .seed = training.seed,
                             .reproducibility = training.reproducibility,
                             .max_batch_size = training.max_batch_size};
}

Result<api::FrozenTraining> FrozenOrNew(const api::ElasticTrainingJob& job) {
  if (job.status.training) return *job.status.training;
  return FreezeTraining(job.spec);
}

std::optional<api::FrozenTraining> TrainingOf(const JobView& view) {
  const api::JobSpec& spec = view.job->spec;
  if (IsAdmitted(spec, view.job->status)) return view.job->status.training;
  if (spec.suspend || !spec.learner_template.error.empty()) return std::nullopt;
  if (HasFormerLearners(view)) return std::nullopt;
  const TemplateCheck* check = CurrentTemplateCheck(view);
  if (check == nullptr || !check->accepted) return std::nullopt;
  const Result<api::FrozenTraining> training = FrozenOrNew(*view.job);
  return training ? std::optional(*training) : std::nullopt;
}

std::optional<api::FrozenTraining> PresentTrainingOf(const JobView& view) {
  std::optional<api::FrozenTraining> training = TrainingOf(view);
  if (!training || !view.coordinator.progress) return training;
  const std::int64_t begin = training->global_batch_size;
  const std::int64_t batch = view.coordinator.progress->batch_size.value_or(begin);
  const std::int64_t growth = begin > 0 ? batch / begin : 1;
  const bool is_possible = batch <= training->max_batch_size.value_or(begin) && growth >= 1 &&
                           batch == growth * begin &&
                           std::has_single_bit(static_cast<std::uint64_t>(growth)) &&
                           growth <= kMaxShardsOfTick / training->logical_shards;
  if (!is_possible) return training;
  training->global_batch_size = batch;
  training->logical_shards *= static_cast<int>(growth);
  return training;
}

AdmissionOutcome DecideAdmission(const JobView& view, WallTime now) {
  using enum api::ConditionStatus;
  if (const std::string& error = view.job->spec.learner_template.error; !error.empty()) {
    return {.verdict = Verdict{kFalse, "InvalidTemplate", error}};
  }
  if (HasFormerLearners(view)) {
    return {.verdict =
                Verdict{kFalse, "TemplateChanged",
                        "its learners were made from another template or volume: they leave, "
                        "then the job continues with the current one"}};
  }
  const Result<api::FrozenTraining> training = FrozenOrNew(*view.job);
  if (!training) return {.verdict = Verdict{kFalse, "InvalidTraining", training.error().message}};

  const TemplateCheck* check = CurrentTemplateCheck(view);
  if (check != nullptr && check->accepted) {
    return {.verdict = Verdict{kTrue, "Admitted",
                               "the pod template was accepted" + Without(*view.job, *training)},
            .training = *training};
  }
  AdmissionOutcome outcome;
  if (check != nullptr) {
    outcome.verdict = Verdict{kFalse, check->unanswered ? "TemplateUnchecked" : "TemplateRefused",
                              check->message};
  }
  if (check != nullptr && now < check->again_at) {
    outcome.look_again = check->again_at;
  } else {
    outcome.actions.emplace_back(CheckTemplate{});
  }
  return outcome;
}

}  // namespace pliant::controller
