#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "base/event_loop.h"
#include "base/result.h"
#include "trainer/checkpoint/state_dict.h"
#include "trainer/collective/buckets.h"
#include "trainer/data/shard.h"

namespace pliant {

struct CommitTask {
  std::uint64_t epoch = 0;
  std::uint64_t step = 0;  // optimizer steps committed before this one
  std::span<const float>
      gradient;  // mean over the samples of the global batch, parameters in StateDict order
  std::span<const std::byte>
      buffers;     // what shard 0 wrote (ComputeShard), to become the committed buffers
  ShardSums sums;  // over all shards: equal on all learners, so a decision on them is, too
};

// What the evaluation of an epoch came to.
struct EvaluationTask {
  std::uint64_t epoch = 0;
  std::uint64_t step = 0;  // optimizer steps committed before it
  ShardSums sums;          // over the test set: equal on all learners, too
};

// What does not change while a job trains. Equal on all learners of a job.
struct ProgramInfo {
  std::uint64_t train_samples = 0;
  std::uint64_t test_samples = 0;
  std::uint64_t epochs = 0;
  std::size_t gradient_elements = 0;      // fp32
  std::size_t buffer_bytes = 0;           // mutable buffers of the model (BatchNorm statistics)
  std::string name;                       // for people
  bool wants_evaluation_results = false;  // Evaluated is called
};

// Takes note of what is finished of a gradient while the rest is still computed, so that it can
// travel meanwhile.
class GradientSink {
 public:
  // These elements of the gradient will not be written again. None is said twice.
  virtual void OnReady(ElementRange range) = 0;

 protected:
  ~GradientSink() = default;
};

// What the runtime reads of a model in training, whoever calls whom.
class ProgramView {
 public:
  virtual ~ProgramView() = default;
  virtual const ProgramInfo& info() const = 0;

  // The committed state. Its bytes change only while the program commits, ends an evaluation or
  // loads: what it loads is written through these views first.
  virtual StateDict State() = 0;

  // How long it has waited for samples, in all. Between two shards.
  virtual Duration data_wait() const { return {}; }

  // Whether the training is complete with the state as it is, before its epochs are over. Follows
  // from the state, so that all who hold it find the same.
  virtual bool wants_end() const { return false; }
};

// A model in training that is called: what a native binding implements. The runtime calls it from
// one compute thread, one call at a time. State changes only in Commit, in Evaluated and after
// LoadedState.
class Program : public ProgramView {
 public:
  // Forward (and backward, in training) of one shard from the committed state. In training, writes
  // the gradient of the *sum* of the samples' losses to `gradient` (gradient_elements, overwritten)
  // and, for shard 0, the buffers after its forward to `buffers` (buffer_bytes; empty for other
  // shards). Evaluation touches neither. `sink`, where there is one, may be told of what is
  // finished before the end, in any order and by the thread that computes; what it was not told of
  // is finished at the end.
  virtual Result<ShardSums> ComputeShard(const ShardTask& task, std::span<float> gradient,
                                         std::span<std::byte> buffers, GradientSink* sink) = 0;

  // The same of a shard whose gradient is added to `left` next, and does not travel before: where
  // that saves a pass, left + gradient may be written in the gradient's place, rounded as two
  // operations, if `added` says so.
  virtual Result<ShardSums> AddShard(const ShardTask& task, std::span<const float> left,
                                     std::span<float> gradient, bool& added) {
    (void)left;
    added = false;
    return ComputeShard(task, gradient, {}, nullptr);
  }

  // One optimizer step, then the buffers. Elementwise: equal inputs give equal bits everywhere.
  virtual Status Commit(const CommitTask& task) = 0;

  // An epoch was evaluated: for a program that decides on it, or keeps something of it.
  virtual Status Evaluated(const EvaluationTask&) { return {}; }

  // Another state was written through the views of State.
  virtual Status LoadedState() = 0;
};

}  // namespace pliant
