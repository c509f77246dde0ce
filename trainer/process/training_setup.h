#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "base/result.h"
#include "trainer/data/schedule.h"
#include "trainer/process/learner_environment.h"
#include "trainer/protocol/program.h"

namespace pliant {

// How a message names a setting, to whoever wrote the program and the job.
struct SettingName {
  std::string_view program;
  std::string_view job = "the job's";
};
struct SettingNames {
  SettingName global_batch_size = {.program = "the program's global batch size"};
  SettingName logical_shards = {.program = "the program's number of logical shards"};
  SettingName seed = {.program = "the program's seed"};
};

// What a program says of how it is trained.
struct ProgramSettings {
  // Of the job: a program may repeat the job's values. Absent: it does not say.
  std::optional<std::uint64_t> global_batch_size;
  std::optional<int> logical_shards;
  std::optional<std::uint64_t> seed;
  // Of the program alone.
  LastBatch last_batch = LastBatch::kKeep;
  DataOrder order = DataOrder::kShuffled;
  SettingNames names;
};

// What job and program come to. Equal on all learners of a job.
struct TrainingSetup {
  std::uint64_t global_batch_size = 0;
  int logical_shards = 1;
  // Of them, when there are as few learners as the job allows.
  int max_shards_of_learner = 1;
  std::uint64_t seed = 0;
  LastBatch last_batch = LastBatch::kKeep;
  DataOrder order = DataOrder::kShuffled;
  bool operator==(const TrainingSetup&) const = default;
};

// What the environment says; where it does not, what the program says; where neither does, a
// default. kInvalid: they contradict each other, or the global batch is too large.
Result<TrainingSetup> ResolveTraining(const LearnerEnvironment& environment,
                                      const ProgramSettings& program);

// kInvalid, with the field named: no training is possible with these.
Result<Schedule> ScheduleOf(const TrainingSetup& setup, const ProgramInfo& info);

// The number of logical shards of a job that does not name it: the largest power of two that
// divides the global batch, at most the next one that is no less than 4 · max_ranks.
int DefaultLogicalShards(std::uint64_t global_batch_size, int max_ranks);

}  // namespace pliant
