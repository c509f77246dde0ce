#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "tests/device/machine.h"
#include "trainer/binding/pliant.h"

namespace pliant {

// A program on the C interface whose forward, backward and optimizer are queued on a machine: it
// never waits for it. Three parameters, momentum, a buffer, and a loss that the machine computes.
class SmallProgram {
 public:
  struct Options {
    const char* checkpoint_dir = nullptr;
    std::uint64_t epochs = 7;
    std::uint64_t train_samples = 22;
    std::uint64_t batch_size = 0;  // 0: the job's
    int logical_shards = 0;        // likewise
    bool weighs = false;           // and reports two named sums that the machine computes
    float error = 0;               // added to each shard's data: they depend on the process
    // Called when a commit's work is queued, before it is answered.
    std::function<void(pliant_learner*, const pliant_work&)> on_commit = nullptr;
  };
  struct Outcome {
    std::string sha256;
    std::string message;
    std::uint64_t step = 0;
    std::int32_t reason = 0;
    int exit_code = 1;
    int loaded = 0;
    // These are of the last commit.
    double loss_sum = 0;
    double correct_sum = 0;
    double weight_sum = 0;
    std::map<std::string, double> sums;
  };

  // Trains to the end. CHECKs that each call succeeds until the learner ends.
  static Outcome Train(Machine& machine, const Options& options);

 private:
  struct Tensor {
    std::size_t elements = 0;
    float* value = nullptr;
    float* momentum = nullptr;
    float* gradient = nullptr;
  };

  SmallProgram(Machine& machine, const Options& options);
  Outcome Run();
  void Register(const std::string& name, std::int32_t role, std::size_t elements, float* data);
  void Compute(const pliant_work& work);
  void Answer(const pliant_work& work);
  void Commit(const pliant_work& work);

  Machine& machine_;
  const Options& options_;
  pliant_learner* learner_ = nullptr;
  std::vector<Tensor> tensors_;
  float* mean_ = nullptr;   // the buffer
  double* loss_ = nullptr;  // lanes
};

}  // namespace pliant
