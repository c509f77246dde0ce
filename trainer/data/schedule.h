#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "base/result.h"
#include "trainer/data/batch_segments.h"
#include "trainer/data/shard.h"
#include "trainer/membership/types.h"

namespace pliant {

inline constexpr int kMaxLogicalShards = 1 << 16;

// Whether to keep the samples that do not fill the last global batch of an epoch.
enum class LastBatch { kKeep, kDrop };

// The order in which an epoch reads the training set.
enum class DataOrder {
  kShuffled,  // drawn from (seed, epoch)
  kAsItLies,  // index order, for data that are read from front to back
};

// All settings that the order of the data depends on. It does not depend on the learners or on
// their number.
struct DataSpec {
  std::uint64_t train_samples = 0;
  std::uint64_t test_samples = 0;       // 0: no evaluation
  std::uint64_t epochs = 0;             // at most; 0: as many as max_steps need
  std::uint64_t global_batch_size = 0;  // a multiple of logical_shards
  int logical_shards = 0;               // a power of two, at most kMaxLogicalShards
  std::uint64_t seed = 0;
  LastBatch last_batch = LastBatch::kKeep;
  DataOrder order = DataOrder::kShuffled;
  int max_doublings = 0;             // of the batch; 0: it is constant
  std::uint64_t max_steps = 0;       // at most, whatever the epochs; 0: no limit
  std::uint64_t evaluate_every = 0;  // steps of the training; 0: each epoch ends with an evaluation
  bool operator==(const DataSpec&) const = default;
};

// The largest number of logical shards in a tick.
inline int MostShards(const DataSpec& spec) { return spec.logical_shards << spec.max_doublings; }

// Optimizer steps of one pass over the data.
std::uint64_t StepsPerEpoch(std::uint64_t train_samples, std::uint64_t global_batch_size,
                            LastBatch last_batch = LastBatch::kKeep);

// kInvalid: the message names the field.
Status Validate(const DataSpec& spec);

struct TickPlan {
  TickKind kind = TickKind::kTrain;
  std::uint64_t epoch = 0;
  std::uint64_t step = 0;          // optimizer steps before this tick
  std::uint64_t first_sample = 0;  // its position in the epoch's order (or in the test set)
  std::uint64_t samples = 0;       // in this tick, over all shards; never 0
  bool last_of_kind = false;       // the epoch's last optimizer step, or last slice of evaluation
  bool last_of_epoch = false;
  int doublings = 0;  // of the batch and of the shards
  // The step that a constant batch would have reached with these samples, for schedules of learning
  // rates. It is `step` while the batch is constant, and 0 in evaluations.
  std::uint64_t schedule_step = 0;
  bool operator==(const TickPlan&) const = default;
};

// Which samples belong to which tick and shard. An epoch is its optimizer steps, over the training
// set in its order (DataOrder), and then its evaluation, over the test set in index order. With
// `evaluate_every` an evaluation follows the steps whose number it divides, and the last one.
// Both are cut into ticks of one global batch (the last one may be short), and every tick into the
// logical shards: the first n mod V of them get one sample more, so sizes differ by at most one and
// shard 0, whose buffers are kept, is never empty. Batch and shards may be doubled from an epoch on
// (BatchSegments).
//
// A pure function with random access: nothing is advanced, so a learner that joins or resumes
// computes its tick like all others.
class Schedule {
 public:
  static Result<Schedule> Make(const DataSpec& spec, const BatchSegments& segments = {});

  // The same job with other segments. kInvalid: no training of the job can have these.
  Result<Schedule> With(const BatchSegments& segments) const { return Make(spec_, segments); }

  const DataSpec& spec() const { return spec_; }
  const BatchSegments& segments() const { return *segments_; }
  // The first tick with the last segment's batch. The tick before it decided that segment.
  Tick last_change() const { return runs_.back().tick; }
  // Totals under the known segments. A later segment changes only what comes after it begins.
  Tick total_ticks() const { return total_ticks_; }
  std::uint64_t total_steps() const { return total_steps_; }
  // Epochs that the training begins. The last one is not complete if max_steps end within it.
  std::uint64_t epochs() const { return EpochOf(total_steps_ - 1) + 1; }
  // Steps and ticks of the first epoch.
  std::uint64_t steps_per_epoch() const { return runs_.front().steps_per_epoch; }

  // Ticks before an epoch; all of them, if the training ends before it.
  Tick TicksBefore(std::uint64_t epoch) const;
  // The epoch of a step. At the end of the training: the one that would continue.
  std::uint64_t EpochOf(std::uint64_t step) const;
  // The tick of a step. The evaluation that follows it begins with the next tick.
  Tick TickOfStep(std::uint64_t step) const;  // step < total_steps
  // The tick at which a training continues that has committed these steps and evaluated none of
  // the last one's.
  Tick TickAfter(std::uint64_t steps) const { return steps == 0 ? 0 : TickOfStep(steps - 1) + 1; }
  // Optimizer steps in the first `ticks` ticks (at most total_ticks).
  std::uint64_t StepsBefore(Tick ticks) const;
  // Training samples in these ticks; a sample counts each time that it is used.
  std::uint64_t SamplesBefore(Tick ticks) const;
  TickPlan At(Tick tick) const;  // tick < total_ticks
  // Whether training does not continue right after this tick: an evaluation follows, or the end.
  bool PausesAfter(Tick tick) const;
  // Doublings at a tick, also at the end of the training: those of the last epoch.
  int DoublingsAt(Tick tick) const { return RunOf(tick).doublings; }
  // Samples in a whole step, and its logical shards.
  std::uint64_t BatchAt(Tick tick) const { return RunOf(tick).batch_size; }
  int ShardsAt(Tick tick) const { return spec_.logical_shards << DoublingsAt(tick); }
  ShardTask TaskOf(Tick tick, int shard) const;  // shard < ShardsAt(tick)
  // The number of samples of one of `parts` parts of a tick of `samples` samples.
  static std::uint64_t SizeOfPart(std::uint64_t samples, int part, int parts);
  // The same with the tick cut into `parts`, whose sizes differ by at most one. part < parts
  ShardTask PartOf(Tick tick, int part, int parts) const;

 private:
  // Epochs with the same batch. The position of the first of them.
  struct Run {
    std::uint64_t epoch = 0;
    Tick tick = 0;
    std::uint64_t step = 0;
    int doublings = 0;
    std::uint64_t batch_size = 0;
    std::uint64_t steps_per_epoch = 0;
    std::uint64_t evaluation_ticks = 0;
  };

  Schedule(const DataSpec& spec, const BatchSegments& segments);
  const Run& RunOf(Tick tick) const;
  const Run& RunOfStep(std::uint64_t step) const;

  DataSpec spec_;
  std::shared_ptr<const BatchSegments> segments_;
  std::vector<Run> runs_;  // never empty
  std::uint64_t total_steps_ = 0;
  std::uint64_t evaluate_every_ = 0;  // as in spec_, but at most total_steps_
  Tick total_ticks_ = 0;
};

}  // namespace pliant
