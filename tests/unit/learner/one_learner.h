#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "trainer/learner/model_spec.h"
#include "trainer/learner/torch_program.h"
#include "trainer/protocol/program.h"

namespace pliant::learner {

// A small model with every kind of layer: conv, both pools, both kinds of batch norm, linear.
ModelSpec SmallModel();
// `count` random images, the same for the same seed.
Samples RandomDigits(std::uint64_t count, std::uint64_t seed);
std::unique_ptr<TorchProgram> MakeProgram(const ModelSpec& model, std::uint64_t seed);

struct Shard {
  ShardSums sums;
  std::vector<float> gradient;
  std::vector<std::byte> buffers;
};
Shard Compute(Program& program, const ShardTask& task);

// The bytes of the committed state, tensor by tensor.
std::vector<std::vector<std::byte>> Bytes(Program& program);

// One optimizer step over `samples`, split into `shards` shards whose gradients are added in order.
ShardSums TrainStep(Program& program, std::uint64_t step, std::span<const std::uint64_t> samples,
                    int shards);
ShardSums EvaluateAll(Program& program);

}  // namespace pliant::learner
