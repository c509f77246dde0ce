#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "base/result.h"
#include "trainer/data/schedule.h"
#include "trainer/process/learner_environment.h"
#include "trainer/protocol/program.h"

namespace pliant {

// How an error message names a setting, for the authors of the program and of the job.
struct SettingName {
  std::string_view program;
  std::string_view job = "the job's";
};
struct SettingNames {
  SettingName global_batch_size = {.program = "the program's global batch size"};
  SettingName logical_shards = {.program = "the program's number of logical shards"};
  SettingName seed = {.program = "the program's seed"};
  SettingName checkpoint_every_steps = {.program = "the program's checkpoint_every_steps",
                                        .job =
                                            "the job's spec.checkpoint.everySteps "
                                            "(PLIANT_CHECKPOINT_EVERY_STEPS)"};
};

// A program's own settings for its training.
struct ProgramSettings {
  // Settings of the job, which a program may repeat. Absent: the program does not set it.
  std::optional<std::uint64_t> global_batch_size;
  std::optional<int> logical_shards;
  std::optional<std::uint64_t> seed;
  std::optional<std::uint64_t> checkpoint_every_steps;
  // Settings of the program alone.
  LastBatch last_batch = LastBatch::kKeep;
  DataOrder order = DataOrder::kShuffled;
  SettingNames names;
};

// The settings that follow from job and program. Equal on all learners of a job.
struct TrainingSetup {
  std::uint64_t global_batch_size = 0;
  int logical_shards = 1;
  // Shards of one rank when the job has its minimum number of learners, before the batch grows.
  int max_shards_of_learner = 1;
  std::uint64_t seed = 0;
  std::optional<std::uint64_t> max_batch_size;  // none: the batch is constant
  LastBatch last_batch = LastBatch::kKeep;
  DataOrder order = DataOrder::kShuffled;
  std::uint64_t checkpoint_every_steps = 0;  // 0: not by steps
  bool operator==(const TrainingSetup&) const = default;
};

// Takes each setting from the environment, else from the program, else its default. kInvalid: they
// contradict each other, or the global batch is too large.
Result<TrainingSetup> ResolveTraining(const LearnerEnvironment& environment,
                                      const ProgramSettings& program);

// kInvalid, with the field named: no training is possible with these.
Result<Schedule> ScheduleOf(const TrainingSetup& setup, const ProgramInfo& info);

}  // namespace pliant
