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

Status Validate(const DataSpec& spec) {
  if (spec.train_samples == 0) return Invalid("trainSamples: there must be at least one sample");
  if (spec.train_samples > kMaxSamples)
    return Invalid(Format("trainSamples: {} is more than 2^48", spec.train_samples));
  if (spec.test_samples > kMaxSamples)
    return Invalid(Format("testSamples: {} is more than 2^48", spec.test_samples));
  if (spec.epochs == 0) return Invalid("epochs: there must be at least one");
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
  if (spec.epochs > kMaxTicks / (DivideUp(spec.train_samples, spec.global_batch_size) +
                                 DivideUp(spec.test_samples, spec.global_batch_size)))
    return Invalid(
        Format("epochs: {} is too large: it would make more than 2^62 steps", spec.epochs));
  return {};
}

namespace {

Status Validate(const DataSpec& spec, const BatchSegments& segments) {
  if (segments.size() > kMaxBatchSegments)
    return Invalid(Format("batches: more than {}", kMaxBatchSegments));
  BatchSegment before;
  for (const BatchSegment& segment : segments) {
    if (segment.epoch <= before.epoch || segment.epoch >= spec.epochs)
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
    run.ticks_per_epoch = run.steps_per_epoch + DivideUp(spec_.test_samples, run.batch_size);
    runs_.push_back(run);
  };
  add({});
  for (const BatchSegment& segment : segments) {
    const Run& before = runs_.back();
    const std::uint64_t epochs = segment.epoch - before.epoch;
    add({.epoch = segment.epoch,
         .tick = before.tick + epochs * before.ticks_per_epoch,
         .step = before.step + epochs * before.steps_per_epoch,
         .doublings = segment.doublings});
  }
}

const Schedule::Run& Schedule::RunOf(Tick tick) const {
  return *std::prev(std::ranges::upper_bound(runs_, tick, {}, &Run::tick));
}

Tick Schedule::TicksBefore(std::uint64_t epoch) const {
  const Run& run = *std::prev(std::ranges::upper_bound(runs_, epoch, {}, &Run::epoch));
  return run.tick + (epoch - run.epoch) * run.ticks_per_epoch;
}

std::uint64_t Schedule::StepsBefore(Tick ticks) const {
  const Run& run = RunOf(ticks);
  const Tick in_run = ticks - run.tick;
  return run.step + in_run / run.ticks_per_epoch * run.steps_per_epoch +
         std::min(in_run % run.ticks_per_epoch, run.steps_per_epoch);
}

std::uint64_t Schedule::SamplesBefore(Tick ticks) const {
  const auto in_epoch = [this](const Run& run) {
    return std::min(spec_.train_samples, run.steps_per_epoch * run.batch_size);
  };
  std::uint64_t samples = 0;
  const Run& last = RunOf(ticks);
  for (std::size_t i = 0; &runs_[i] != &last; ++i)
    samples += (runs_[i + 1].epoch - runs_[i].epoch) * in_epoch(runs_[i]);
  const Tick in_run = ticks - last.tick;
  const std::uint64_t steps = std::min(in_run % last.ticks_per_epoch, last.steps_per_epoch);
  return samples + in_run / last.ticks_per_epoch * in_epoch(last) +
         std::min(in_epoch(last), steps * last.batch_size);
}

TickPlan Schedule::At(Tick tick) const {
  CHECK(tick < total_ticks(), "a tick of the job");
  const Run& run = RunOf(tick);
  const std::uint64_t in_epoch = (tick - run.tick) % run.ticks_per_epoch;
  const bool train = in_epoch < run.steps_per_epoch;
  const std::uint64_t slice = train ? in_epoch : in_epoch - run.steps_per_epoch;
  const std::uint64_t first = slice * run.batch_size;
  const std::uint64_t all = train ? spec_.train_samples : spec_.test_samples;
  const std::uint64_t slices =
      train ? run.steps_per_epoch : run.ticks_per_epoch - run.steps_per_epoch;
  const std::uint64_t epoch = run.epoch + (tick - run.tick) / run.ticks_per_epoch;
  return {.kind = train ? TickKind::kTrain : TickKind::kEvaluate,
          .epoch = epoch,
          .step = StepsBefore(tick),
          .first_sample = first,
          .samples = std::min(run.batch_size, all - first),
          .last_of_kind = slice + 1 == slices,
          .last_of_epoch = in_epoch + 1 == run.ticks_per_epoch,
          .doublings = run.doublings,
          .schedule_step = train ? epoch * steps_per_epoch() + first / spec_.global_batch_size : 0};
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
