#include "trainer/runtime/checkpoint_label.h"

#include <utility>

namespace pliant {

JobIdentity JobOf(const DataSpec& spec, const BaseModel& base) {
  return {.seed = spec.seed,
          .global_batch_size = spec.global_batch_size,
          .logical_shards = spec.logical_shards,
          .train_samples = spec.train_samples,
          .test_samples = spec.test_samples,
          .base = base};
}

CheckpointLabel LabelOf(const Schedule& schedule, const Position& state, MembershipId membership,
                        std::string framework, const BaseModel& base) {
  const Tick applied = state.applied_ticks;
  // An evaluation is repeated as a whole. Until its end, when the program receives the result and
  // may change the state, the state is as before it.
  const Tick total = schedule.total_ticks();
  Tick tick = applied;
  while (tick > 0 && tick < total && schedule.At(tick).kind == TickKind::kEvaluate &&
         schedule.At(tick - 1).kind == TickKind::kEvaluate) {
    --tick;
  }
  return {.position = {.step = schedule.StepsBefore(applied),
                       .tick = tick,
                       .epoch = tick < total ? schedule.At(tick).epoch : schedule.spec().epochs,
                       .membership = membership,
                       .noise = state.noise,
                       .batches = state.batches},
          .job = JobOf(schedule.spec(), base),
          .framework = std::move(framework)};
}

}  // namespace pliant
