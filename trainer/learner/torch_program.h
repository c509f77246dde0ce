#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "base/result.h"
#include "trainer/learner/model_spec.h"
#include "trainer/learner/samples.h"
#include "trainer/protocol/program.h"

namespace pliant::learner {

// "libtorch 2.6.0". It must be equal on all learners that are to compute the same bits.
std::string TorchVersion();

// Trains the model of a model file with libtorch's CPU kernels.
//
// The bits do not depend on which learner computes: torch runs on one thread with its deterministic
// algorithms, every shard is a batch of its own, and buffers that a forward changes (batch_norm's
// statistics) are scratch until Commit.
class TorchProgram final : public Program {
 public:
  struct Options {
    std::uint64_t seed = 0;             // for the initial parameters
    std::uint64_t steps_per_epoch = 1;  // for the learning rate's schedule
  };
  // kInvalid: `model` cannot be built, or does not fit these samples.
  static Result<std::unique_ptr<TorchProgram>> Create(const ModelSpec& model, Samples train,
                                                      Samples test, const Options& options);
  ~TorchProgram() override;

  const ProgramInfo& info() const override;
  Result<ShardSums> ComputeShard(const ShardTask& task, std::span<float> gradient,
                                 std::span<std::byte> buffers, GradientSink* sink) override;
  Duration data_wait() const override;
  Status Commit(const CommitTask& task) override;
  StateDict State() override;
  Status LoadedState() override;

 private:
  struct Impl;  // keeps torch's headers out of other files
  explicit TorchProgram(std::unique_ptr<Impl> impl);

  std::unique_ptr<Impl> impl_;
};

}  // namespace pliant::learner
