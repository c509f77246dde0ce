#include "trainer/learner/train_spec.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <string_view>

#include "base/check.h"
#include "base/format.h"

namespace pliant::learner {

Status CheckAgainstJob(const TrainSpec& train, const JobSettings& job) {
  const auto check = [](std::string_view model_key, const auto& model_value,
                        std::string_view job_key, const auto& job_value) -> Status {
    if (!model_value || !job_value || *model_value == *job_value) return {};
    return Invalid(Format(
        "train.{} of the model is {}, but {} of the job is {}: remove one or make them equal",
        model_key, *model_value, job_key, *job_value));
  };
  RETURN_IF_ERROR(check("batchSize", train.batch_size, "globalBatchSize", job.global_batch_size));
  RETURN_IF_ERROR(
      check("logicalShards", train.logical_shards, "logicalShards", job.logical_shards));
  return check("seed", train.seed, "seed", job.seed);
}

double LearningRateAt(const TrainSpec& train, std::uint64_t step, std::uint64_t steps_per_epoch) {
  CHECK(steps_per_epoch > 0, "an epoch has steps");
  const LearningRateSchedule& schedule = train.schedule;
  const auto steps_of = [&](double epochs) {
    return std::round(epochs * static_cast<double>(steps_per_epoch));
  };
  const auto now = static_cast<double>(step);
  const double warmup = steps_of(schedule.warmup_epochs);
  if (now < warmup) return train.learning_rate * (now + 1) / warmup;
  switch (schedule.kind) {
    case LearningRateSchedule::Kind::kConstant:
      return train.learning_rate;
    case LearningRateSchedule::Kind::kStep: {
      const auto passed = std::ranges::count_if(
          schedule.at_epochs, [&](double epoch) { return now >= steps_of(epoch); });
      return train.learning_rate * std::pow(schedule.factor, static_cast<double>(passed));
    }
    case LearningRateSchedule::Kind::kCosine: {
      const double end = steps_of(static_cast<double>(train.epochs));
      const double done = end > warmup ? std::min((now - warmup) / (end - warmup), 1.0) : 1.0;
      const double share = (1 + std::cos(std::numbers::pi * done)) / 2;
      return train.learning_rate * (schedule.least + (1 - schedule.least) * share);
    }
  }
  return train.learning_rate;
}

}  // namespace pliant::learner
