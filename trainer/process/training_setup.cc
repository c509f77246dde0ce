#include "trainer/process/training_setup.h"

#include "base/default_shards.h"
#include "base/format.h"
#include "trainer/data/batch_rule.h"

namespace pliant {
namespace {

constexpr std::uint64_t kGlobalBatchSizeDefault = 256;
constexpr std::uint64_t kMaxGlobalBatchSize = std::uint64_t{1} << 32U;

// The job's value, which the program may repeat.
template <typename T>
Result<std::optional<T>> Settle(const SettingName& name, const std::optional<T>& job,
                                const std::optional<T>& program) {
  if (job && program && *job != *program) {
    return Invalid(Format("{} is {}, but {} is {}: remove one or make them equal", name.program,
                          *program, name.job, *job));
  }
  return job ? job : program;
}

int LogicalShardsOf(const LearnerEnvironment& environment, std::uint64_t global_batch_size,
                    std::optional<int> settled) {
  if (settled) return *settled;
  // A program that trains alone and expects no other learners gets what a plain training loop does.
  if (!environment.coordinator && !environment.max_learners) return 1;
  const int max_ranks = MaxLearnersOf(environment) * environment.ranks_per_learner;
  return DefaultLogicalShards(global_batch_size, static_cast<std::uint64_t>(max_ranks));
}

}  // namespace

Result<TrainingSetup> ResolveTraining(const LearnerEnvironment& environment,
                                      const ProgramSettings& program) {
  ASSIGN_OR_RETURN(const auto batch,
                   Settle(program.names.global_batch_size, environment.global_batch_size,
                          program.global_batch_size));
  ASSIGN_OR_RETURN(const auto shards, Settle(program.names.logical_shards,
                                             environment.logical_shards, program.logical_shards));
  ASSIGN_OR_RETURN(const auto seed, Settle(program.names.seed, environment.seed, program.seed));
  const std::uint64_t every = environment.checkpoint_every_steps;
  ASSIGN_OR_RETURN(
      const auto checkpoint_every_steps,
      Settle(program.names.checkpoint_every_steps, every == 0 ? std::nullopt : std::optional(every),
             program.checkpoint_every_steps));
  const std::uint64_t global_batch_size = batch.value_or(kGlobalBatchSizeDefault);
  if (global_batch_size > kMaxGlobalBatchSize) {
    return Invalid(Format("the global batch size is {}: it must be at most {}", global_batch_size,
                          kMaxGlobalBatchSize));
  }
  const int logical_shards = LogicalShardsOf(environment, global_batch_size, shards);
  const int min_ranks = environment.min_learners * environment.ranks_per_learner;
  return TrainingSetup{.global_batch_size = global_batch_size,
                       .logical_shards = logical_shards,
                       .max_shards_of_learner = (logical_shards - 1) / min_ranks + 1,
                       .seed = seed.value_or(0),
                       .max_batch_size = environment.max_batch_size,
                       .last_batch = program.last_batch,
                       .order = program.order,
                       .checkpoint_every_steps = checkpoint_every_steps.value_or(0)};
}

Result<Schedule> ScheduleOf(const TrainingSetup& setup, const ProgramInfo& info) {
  DataSpec spec{.train_samples = info.train_samples,
                .test_samples = info.test_samples,
                .epochs = info.epochs,
                .global_batch_size = setup.global_batch_size,
                .logical_shards = setup.logical_shards,
                .seed = setup.seed,
                .last_batch = setup.last_batch,
                .order = setup.order,
                .max_steps = info.max_steps,
                .evaluate_every = info.evaluate_every};
  if (setup.max_batch_size) {
    RETURN_IF_ERROR(Validate(spec));
    ASSIGN_OR_RETURN(spec.max_doublings, MaxDoublings(spec, *setup.max_batch_size));
  }
  return Schedule::Make(spec);
}

}  // namespace pliant
