#include "trainer/runtime/checkpoint_label.h"

#include <utility>

#include "base/divide.h"

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
                       .epoch = tick < total ? schedule.At(tick).epoch
                                             : schedule.EpochOf(schedule.total_steps()),
                       .membership = membership,
                       .noise = state.noise,
                       .batches = state.batches,
                       .evaluate_every = schedule.spec().evaluate_every},
          .job = JobOf(schedule.spec(), base),
          .framework = std::move(framework)};
}

TrainingPosition PositionIn(const Schedule& schedule, TrainingPosition position) {
  const DataSpec& spec = schedule.spec();
  if (spec.evaluate_every == 0 && position.evaluate_every == 0) return position;
  const Tick evaluation = DivideUp(spec.test_samples, spec.global_batch_size);
  const bool known = position.step > 0 && position.step <= schedule.total_steps() &&
                     position.tick >= position.step && position.batches.empty() && evaluation > 0;
  if (!known) return position;
  const std::uint64_t every =
      position.evaluate_every != 0 ? position.evaluate_every : schedule.steps_per_epoch();
  const Tick evaluated = (position.tick - position.step) / evaluation;
  const Tick before = (position.step - 1) / every;  // evaluations of earlier steps
  if ((position.tick - position.step) % evaluation != 0 || evaluated < before ||
      evaluated > before + 1) {
    return position;
  }
  position.tick = schedule.TickAfter(position.step);
  const bool evaluates = position.tick < schedule.total_ticks() &&
                         schedule.At(position.tick).kind == TickKind::kEvaluate;
  if (evaluates && evaluated > before) position.tick += evaluation;
  return position;
}

}  // namespace pliant
