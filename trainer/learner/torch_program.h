#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "base/result.h"
#include "trainer/learner/model_spec.h"
#include "trainer/learner/samples.h"
#include "trainer/protocol/program.h"

namespace pliant::learner {

// "libtorch 2.6.0": learners that are to compute the same bits must have the same.
std::string TorchVersion();

// A model file's model in training on libtorch's CPU kernels.
//
// Bits do not depend on who computes: torch runs on one thread with its deterministic algorithms,
// every shard is a batch of its own, and what a forward changes (batch_norm's statistics) is
// scratch until Commit.
class TorchProgram final : public Program {
 public:
  struct Options {
    std::uint64_t seed = 0;             // of the first parameters
    std::uint64_t steps_per_epoch = 1;  // for the learning rate's schedule
  };
  // kInvalid if `model` cannot be built, or not for these samples.
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
  struct Impl;  // keeps torch's headers out of everybody else's compile
  explicit TorchProgram(std::unique_ptr<Impl> impl);

  std::unique_ptr<Impl> impl_;
};

}  // namespace pliant::learner
