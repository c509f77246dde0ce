#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/event_loop.h"
#include "base/result.h"
#include "trainer/checkpoint/final_layout.h"
#include "trainer/checkpoint/manifest.h"
#include "trainer/checkpoint/state_dict.h"
#include "trainer/collective/buckets.h"
#include "trainer/collective/gradient_cells.h"
#include "trainer/data/shard.h"

namespace pliant {

class GradientDevice;

struct CommitTask {
  std::uint64_t epoch = 0;
  std::uint64_t step = 0;           // optimizer steps committed before this one
  std::uint64_t schedule_step = 0;  // as in TickPlan
  int doublings = 0;                // of the batch, since the training began
  bool last_of_epoch = false;       // the epoch's last step
  // Mean over the samples of the global batch, parameters in StateDict order. Times `mean_factor`
  // it is the mean over the weights of a program that has some.
  std::span<const float> gradient;
  double mean_factor = 1;
  std::span<const std::byte>
      buffers;         // shard 0's output (ComputeShard); they become the committed buffers
  ShardSums sums;      // over all shards: equal on all learners, and so is a decision based on them
  bool first = false;  // this learner is the membership's first, for output that is wanted once
};

// The result of an evaluation.
struct EvaluationTask {
  std::uint64_t epoch = 0;
  std::uint64_t step = 0;  // optimizer steps committed before it
  ShardSums sums;          // over the test set: equal on all learners
  bool first = false;      // as in CommitTask
};

// Constants of a job. Equal on all its learners.
struct ProgramInfo {
  std::uint64_t train_samples = 0;
  std::uint64_t test_samples = 0;
  std::uint64_t epochs = 0;
  std::size_t gradient_elements = 0;  // fp32
  // Elements of each tensor of the gradient, in order; empty: it is one tensor.
  std::vector<std::size_t> gradient_tensors;
  std::size_t buffer_bytes = 0;           // mutable buffers of the model (BatchNorm statistics)
  std::string name;                       // for people
  bool wants_evaluation_results = false;  // whether Evaluated is called
  BaseModel base;                         // what the model has outside of the state
  std::uint64_t max_steps = 0;            // as in DataSpec
  std::uint64_t evaluate_every = 0;       // as in DataSpec
};

inline GradientCells CellsOf(const ProgramInfo& info) {
  if (info.gradient_tensors.empty()) return {info.gradient_elements};
  return GradientCells(info.gradient_tensors);
}

// Receives finished ranges of a gradient while the rest is still computed, so that they can be sent
// meanwhile.
class GradientSink {
 public:
  // These elements of the gradient will not be written again. No element is reported twice.
  virtual void OnReady(ElementRange range) = 0;

 protected:
  ~GradientSink() = default;
};

// A program's wishes for what happens after a change of its state.
struct ProgramWishes {
  // The training is complete with this state, before its last step. Determined by the state, so
  // that all learners that hold it agree.
  bool end = false;
  // A checkpoint of this state. Only that of rank 0 counts.
  bool checkpoint = false;
  // This model is the best one so far: it is written with this text. Only rank 0's counts.
  std::optional<std::string> best = std::nullopt;
};

// The properties of a model in training that the runtime reads, whether the runtime calls the
// program or the program calls the runtime.
class ProgramView {
 public:
  virtual ~ProgramView() = default;
  virtual const ProgramInfo& info() const = 0;

  // The committed state. Its bytes change only while the program commits, ends an evaluation or
  // loads a state, which is first written through these views.
  virtual StateDict State() = 0;

  // The layout of the final model. Its tensors at home do not change while the program trains.
  virtual FinalLayout final_layout() const { return {}; }

  // The device that has its gradients, for the life of the program; nullptr: the host has them. All
  // gradients that the program is given are then addresses of the device, and what it reports of
  // them holds once the device is done with what the program has queued.
  virtual GradientDevice* gradient_device() { return nullptr; }

  // Total time spent waiting for samples. Called between two shards.
  virtual Duration data_wait() const { return {}; }

  // As of the last change of the state.
  virtual ProgramWishes wishes() const { return {}; }
};

// A model in training that the runtime calls; a native binding implements it. The runtime calls it
// from one compute thread, one call at a time. State changes only in Commit, in Evaluated and after
// LoadedState.
class Program : public ProgramView {
 public:
  // Forward (and backward, in training) of one shard from the committed state. In training, writes
  // the gradient of the *sum* of the samples' losses to `gradient` (gradient_elements, overwritten)
  // and, for shard 0, the buffers after its forward to `buffers` (buffer_bytes; empty for other
  // shards). Evaluation touches neither. `sink`, if there is one, may receive finished ranges
  // early, in any order, on the thread that computes; the other ranges are finished at the end.
  virtual Result<ShardSums> ComputeShard(const ShardTask& task, std::span<float> gradient,
                                         std::span<std::byte> buffers, GradientSink* sink) = 0;

  // Like ComputeShard, for a shard whose gradient is added to `left` next and is not sent before.
  // If that saves a pass, the program may write left + gradient to `gradient`, rounded as two
  // operations, and set `added`.
  virtual Result<ShardSums> AddShard(const ShardTask& task, std::span<const float> left,
                                     std::span<float> gradient, bool& added) {
    (void)left;
    added = false;
    return ComputeShard(task, gradient, {}, nullptr);
  }

  // One optimizer step, then the buffers. Elementwise: equal inputs give equal bits everywhere.
  virtual Status Commit(const CommitTask& task) = 0;

  // Called after an evaluation, for a program that uses or stores the result.
  virtual Status Evaluated(const EvaluationTask&) { return {}; }

  // Called after another state was written through the views of State.
  virtual Status LoadedState() = 0;
};

}  // namespace pliant
