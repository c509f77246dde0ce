#include "trainer/data/schedule.h"

#include <algorithm>
#include <bit>
#include <cstdlib>
#include <iterator>

#include "base/check.h"
#include "base/divide.h"
#include "base/format.h"
#include "trainer/data/permutation.h"

namespace pliant {
namespace {

// With these limits ticks, steps and positions do not overflow 64 bits.
constexpr std::uint64_t kMaxSamples = std::uint64_t{1} << 48;
constexpr std::uint64_t kMaxTicks = std::uint64_t{1} << 62;
constexpr int kMaxDoublings = 15;

// Keeps the hashes of different uses apart.
enum Purpose : std::uint64_t { kOrderOfEpoch = 1, kTrainingShard = 2, kEvaluationShard = 3 };

}  // namespace

std::uint64_t StepsPerEpoch(std::uint64_t train_samples, std::uint64_t global_batch_size,
                            LastBatch last_batch) {
  return last_batch == LastBatch::kKeep ? DivideUp(train_samples, global_batch_size)
                                        : train_samples / global_batch_size;
}

namespace {

Status ValidateLength(const DataSpec& spec) {
  const std::uint64_t steps =
      StepsPerEpoch(spec.train_samples, spec.global_batch_size, spec.last_batch);
  const std::uint64_t evaluation = DivideUp(spec.test_samples, spec.global_batch_size);
  if (spec.epochs > kMaxTicks / (steps + evaluation))
    return Invalid(
        Format("epochs: {} is too large: it would make more than 2^62 steps", spec.epochs));
  // Each step may be followed by an evaluation.
  const std::uint64_t most = kMaxTicks / (1 + evaluation);
  if (spec.max_steps > most)
    return Invalid(Format("maxSteps: {} is too large: use at most {}", spec.max_steps, most));
  if (spec.evaluate_every == 0) return {};
  if (spec.test_samples == 0)
    return Invalid(
        Format("evaluateEvery: {} steps, but there are no test samples: give some, or "
               "leave it out",
               spec.evaluate_every));
  if (spec.max_doublings > 0)
    return Invalid(
        Format("evaluateEvery: {} steps, but a training whose batch grows is evaluated "
               "after its epochs: leave it out, or use the batch mode Constant",
               spec.evaluate_every));
  // With max_steps that many are enough, however many epochs there might be.
  if (spec.max_steps == 0 && spec.epochs > most / steps)
    return Invalid(
        Format("epochs: {} is too large for evaluations after every {} steps: it would "
               "make more than 2^62 of both",
               spec.epochs, spec.evaluate_every));
  return {};
}

}  // namespace

Status Validate(const DataSpec& spec) {
  if (spec.train_samples == 0) return Invalid("trainSamples: there must be at least one sample");
  if (spec.train_samples > kMaxSamples)
    return Invalid(Format("trainSamples: {} is more than 2^48", spec.train_samples));
  if (spec.test_samples > kMaxSamples)
    return Invalid(Format("testSamples: {} is more than 2^48", spec.test_samples));
  if (spec.epochs == 0 && spec.max_steps == 0)
    return Invalid("epochs: there must be at least one, or a maximum of steps (maxSteps)");
  if (spec.logical_shards < 1 || spec.logical_shards > kMaxLogicalShards ||
      !std::has_single_bit(static_cast<unsigned>(spec.logical_shards)))
    return Invalid(Format("logicalShards: {} is not a power of two between 1 and {}",
                          spec.logical_shards, kMaxLogicalShards));
  if (spec.global_batch_size == 0 || spec.global_batch_size > kMaxSamples ||
      spec.global_batch_size % static_cast<std::uint64_t>(spec.logical_shards) != 0)
    return Invalid(Format("globalBatchSize: {} is not a positive multiple of logicalShards ({})",
                          spec.global_batch_size, spec.logical_shards));
  if (spec.max_doublings < 0 || spec.max_doublings > kMaxDoublings ||
      spec.logical_shards > kMaxLogicalShards >> spec.max_doublings)
    return Invalid(Format("maxDoublings: {} is too large", spec.max_doublings));
  if (spec.last_batch == LastBatch::kDrop && spec.train_samples < spec.global_batch_size)
    return Invalid(
        Format("lastBatch: Drop would drop all {} samples, fewer than a batch of {}: use Keep",
               spec.train_samples, spec.global_batch_size));
  return ValidateLength(spec);
}

namespace {

Status Validate(const DataSpec& spec, const BatchSegments& segments) {
  if (segments.size() > kMaxBatchSegments)
    return Invalid(Format("batches: more than {}", kMaxBatchSegments));
  BatchSegment before;
  std::uint64_t steps = 0;  // before the segment, if they are limited
  for (const BatchSegment& segment : segments) {
    const auto follows = [&] {
      if (segment.epoch <= before.epoch) return false;
      if (spec.epochs != 0 && segment.epoch >= spec.epochs) return false;
      if (spec.max_steps == 0) return true;
      const std::uint64_t batch = spec.global_batch_size << before.doublings;
      const std::uint64_t of_epoch = StepsPerEpoch(spec.train_samples, batch, spec.last_batch);
      const std::uint64_t epochs = segment.epoch - before.epoch;
      if (epochs > (spec.max_steps - steps - 1) / of_epoch) return false;
      steps += epochs * of_epoch;
      return true;
    };
    if (!follows())
      return Invalid(Format("batches: epoch {} is not one that follows", segment.epoch));
    if (segment.doublings < 0 || segment.doublings > spec.max_doublings ||
        std::abs(segment.doublings - before.doublings) != 1)
      return Invalid(
          Format("batches: {} doublings cannot follow {}", segment.doublings, before.doublings));
    if (spec.global_batch_size << segment.doublings > spec.train_samples)
      return Invalid(Format("batches: a batch of {} is more than the {} samples",
                            spec.global_batch_size << segment.doublings, spec.train_samples));
    before = segment;
  }
  return {};
}

}  // namespace

Result<Schedule> Schedule::Make(const DataSpec& spec, const BatchSegments& segments) {
  RETURN_IF_ERROR(Validate(spec));
  RETURN_IF_ERROR(Validate(spec, segments));
  return Schedule(spec, segments);
}

Schedule::Schedule(const DataSpec& spec, const BatchSegments& segments)
    : spec_(spec), segments_(std::make_shared<const BatchSegments>(segments)) {
  const auto add = [this](Run run) {
    run.batch_size = spec_.global_batch_size << run.doublings;
    run.steps_per_epoch = StepsPerEpoch(spec_.train_samples, run.batch_size, spec_.last_batch);
    run.evaluation_ticks = DivideUp(spec_.test_samples, run.batch_size);
    runs_.push_back(run);
  };
  add({});
  for (const BatchSegment& segment : segments) {
    const Run& before = runs_.back();
    const std::uint64_t epochs = segment.epoch - before.epoch;
    const std::uint64_t steps = epochs * before.steps_per_epoch;
    add({.epoch = segment.epoch,
         .tick = before.tick + steps + epochs * before.evaluation_ticks,
         .step = before.step + steps,
         .doublings = segment.doublings});
  }
  const Run& last = runs_.back();
  total_steps_ = spec.epochs == 0 ? spec.max_steps
                                  : last.step + (spec.epochs - last.epoch) * last.steps_per_epoch;
  if (spec.max_steps != 0) total_steps_ = std::min(total_steps_, spec.max_steps);
  evaluate_every_ = std::min(spec.evaluate_every, total_steps_);
  total_ticks_ = evaluate_every_ == 0 ? TickOfStep(total_steps_)
                                      : total_steps_ + DivideUp(total_steps_, evaluate_every_) *
                                                           last.evaluation_ticks;
}

const Schedule::Run& Schedule::RunOf(Tick tick) const {
  return *std::prev(std::ranges::upper_bound(runs_, tick, {}, &Run::tick));
}

const Schedule::Run& Schedule::RunOfStep(std::uint64_t step) const {
  return *std::prev(std::ranges::upper_bound(runs_, step, {}, &Run::step));
}

Tick Schedule::TicksBefore(std::uint64_t epoch) const {
  const Run& run = *std::prev(std::ranges::upper_bound(runs_, epoch, {}, &Run::epoch));
  // An epoch is at least one step. Compared so that a product cannot overflow.
  if (epoch - run.epoch > (total_steps_ - run.step) / run.steps_per_epoch) return total_ticks_;
  const std::uint64_t step = run.step + (epoch - run.epoch) * run.steps_per_epoch;
  return step < total_steps_ ? TickOfStep(step) : total_ticks_;
}

std::uint64_t Schedule::EpochOf(std::uint64_t step) const {
  const Run& run = RunOfStep(step);
  return run.epoch + (step - run.step) / run.steps_per_epoch;
}

Tick Schedule::TickOfStep(std::uint64_t step) const {
  const Run& run = RunOfStep(step);
  const std::uint64_t evaluations =
      evaluate_every_ == 0 ? (step - run.step) / run.steps_per_epoch : step / evaluate_every_;
  return run.tick + (step - run.step) + evaluations * run.evaluation_ticks;
}

std::uint64_t Schedule::StepsBefore(Tick ticks) const {
  const Run& run = RunOf(ticks);
  const std::uint64_t steps = evaluate_every_ == 0 ? run.steps_per_epoch : evaluate_every_;
  const std::uint64_t row = steps + run.evaluation_ticks;  // of ticks
  const Tick in_run = ticks - run.tick;
  // The last row may have fewer steps before its evaluation.
  return std::min(total_steps_, run.step + in_run / row * steps + std::min(in_run % row, steps));
}

std::uint64_t Schedule::SamplesBefore(Tick ticks) const {
  const auto in_epoch = [this](const Run& run) {
    return std::min(spec_.train_samples, run.steps_per_epoch * run.batch_size);
  };
  const std::uint64_t steps = StepsBefore(ticks);
  std::uint64_t samples = 0;
  const Run& last = RunOfStep(steps);
  for (std::size_t i = 0; &runs_[i] != &last; ++i)
    samples += (runs_[i + 1].epoch - runs_[i].epoch) * in_epoch(runs_[i]);
  const std::uint64_t in_run = steps - last.step;
  return samples + in_run / last.steps_per_epoch * in_epoch(last) +
         in_run % last.steps_per_epoch * last.batch_size;
}

TickPlan Schedule::At(Tick tick) const {
  CHECK(tick < total_ticks(), "a tick of the job");
  const std::uint64_t step = StepsBefore(tick);
  const bool train = step < total_steps_ && TickOfStep(step) == tick;
  const std::uint64_t begun = train ? step : step - 1;  // the step, or the one that is evaluated
  const Run& run = RunOfStep(begun);
  const std::uint64_t in_epoch = (begun - run.step) % run.steps_per_epoch;
  const std::uint64_t epoch = EpochOf(begun);
  const std::uint64_t slice = train ? in_epoch : tick - TickAfter(step);
  const std::uint64_t slices = train ? run.steps_per_epoch : run.evaluation_ticks;
  const std::uint64_t first = slice * run.batch_size;
  const std::uint64_t all = train ? spec_.train_samples : spec_.test_samples;
  return {
      .kind = train ? TickKind::kTrain : TickKind::kEvaluate,
      .epoch = epoch,
      .step = step,
      .first_sample = first,
      .samples = std::min(run.batch_size, all - first),
      .last_of_kind = slice + 1 == slices,
      .last_of_epoch = in_epoch + 1 == run.steps_per_epoch && tick + 1 == TicksBefore(epoch + 1),
      .doublings = run.doublings,
      .schedule_step = train ? epoch * steps_per_epoch() + first / spec_.global_batch_size : 0};
}

bool Schedule::PausesAfter(Tick tick) const {
  return tick + 1 >= total_ticks_ || At(tick + 1).kind == TickKind::kEvaluate;
}

ShardTask Schedule::TaskOf(Tick tick, int shard) const {
  const int shards = ShardsAt(tick);
  CHECK(shard >= 0 && shard < shards, "a logical shard of the tick");
  return PartOf(tick, shard, shards);
}

std::uint64_t Schedule::SizeOfPart(std::uint64_t samples, int part, int parts) {
  const auto cut = static_cast<std::uint64_t>(parts);
  return samples / cut + (static_cast<std::uint64_t>(part) < samples % cut ? 1 : 0);
}

ShardTask Schedule::PartOf(Tick tick, int part, int parts) const {
  CHECK(part >= 0 && part < parts, "one of the parts");
  const TickPlan plan = At(tick);
  const auto cut = static_cast<std::uint64_t>(parts);
  const auto index = static_cast<std::uint64_t>(part);
  const std::uint64_t least = plan.samples / cut;
  const std::uint64_t longer = plan.samples % cut;
  const std::uint64_t begin = plan.first_sample + index * least + std::min(index, longer);
  const std::uint64_t count = SizeOfPart(plan.samples, part, parts);

  ShardTask task{.kind = plan.kind,
                 .epoch = plan.epoch,
                 .step = plan.step,
                 .shard = part,
                 .part = part,
                 .parts = parts,
                 .samples = {},
                 .last_of_kind = plan.last_of_kind,
                 .batches = segments_};
  task.samples.reserve(count);
  const bool train = plan.kind == TickKind::kTrain;
  if (train && spec_.order == DataOrder::kShuffled) {
    const Permutation order(spec_.train_samples,
                            HashWords({spec_.seed, kOrderOfEpoch, plan.epoch}));
    for (std::uint64_t i = begin; i < begin + count; ++i) task.samples.push_back(order.At(i));
  } else {
    for (std::uint64_t i = begin; i < begin + count; ++i) task.samples.push_back(i);
  }
  task.seed = train
                  ? HashWords({spec_.seed, kTrainingShard, plan.epoch, plan.step, index})
                  : HashWords({spec_.seed, kEvaluationShard, plan.epoch, plan.first_sample, index});
  return task;
}

}  // namespace pliant
