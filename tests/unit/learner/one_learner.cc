#include "tests/unit/learner/one_learner.h"

#include <cstdlib>
#include <iostream>
#include <numeric>
#include <random>
#include <utility>

namespace pliant::learner {
namespace {

template <typename T>
T OrDie(Result<T> result) {
  if (!result) {
    std::cerr << result.error() << '\n';
    std::abort();
  }
  return *std::move(result);
}

}  // namespace

ModelSpec SmallModel() {
  return {.name = "small",
          .input = {1, 8, 8},
          .layers = {Conv{.out = 4, .kernel = 3, .padding = 1}, BatchNorm{}, Relu{},
                     MaxPool{.kernel = 2, .stride = 2}, Conv{.out = 6, .kernel = 2},
                     AvgPool{.kernel = 2, .stride = 1}, Flatten{}, Linear{.out = 12}, BatchNorm{},
                     Relu{}, Linear{.out = 10}},
          .train = {.epochs = 1,
                    .learning_rate = 0.1,
                    .weight_decay = 0.01,
                    .optimizer = Sgd{.momentum = 0.9},
                    .schedule = {}},
          .data = {}};
}

Samples RandomDigits(std::uint64_t count, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  Samples samples{.shape = {1, 8, 8}, .pixels = {}, .labels = {}};
  for (std::uint64_t i = 0; i < count; ++i) {
    for (int pixel = 0; pixel < 64; ++pixel) {
      samples.pixels.push_back(static_cast<std::uint8_t>(random() % 17));
    }
    samples.labels.push_back(static_cast<std::uint8_t>(random() % 10));
  }
  return samples;
}

std::unique_ptr<TorchProgram> MakeProgram(const ModelSpec& model, std::uint64_t seed) {
  return OrDie(
      TorchProgram::Create(model, RandomDigits(64, 1), RandomDigits(16, 2), {.seed = seed}));
}

Shard Compute(Program& program, const ShardTask& task) {
  Shard shard;
  shard.gradient.assign(program.info().gradient_elements, -7.0F);  // must be overwritten
  if (task.shard == 0) shard.buffers.resize(program.info().buffer_bytes);
  shard.sums = OrDie(program.ComputeShard(task, shard.gradient, shard.buffers, nullptr));
  return shard;
}

std::vector<std::vector<std::byte>> Bytes(Program& program) {
  std::vector<std::vector<std::byte>> bytes;
  for (const TensorView& view : program.State()) {
    bytes.emplace_back(view.bytes.begin(), view.bytes.end());
  }
  return bytes;
}

ShardSums TrainStep(Program& program, std::uint64_t step, std::span<const std::uint64_t> samples,
                    int shards) {
  std::vector<float> mean(program.info().gradient_elements);
  std::vector<std::byte> buffers;
  ShardSums total;
  for (int index = 0; index < shards; ++index) {
    const std::size_t begin = samples.size() * static_cast<std::size_t>(index) / shards;
    const std::size_t end = samples.size() * static_cast<std::size_t>(index + 1) / shards;
    const auto part = samples.subspan(begin, end - begin);
    Shard shard =
        Compute(program, {.step = step, .shard = index, .samples = {part.begin(), part.end()}});
    for (std::size_t i = 0; i < mean.size(); ++i) {
      mean[i] += shard.gradient[i] / static_cast<float>(samples.size());
    }
    if (index == 0) buffers = std::move(shard.buffers);
    total.samples += shard.sums.samples;
    total.loss += shard.sums.loss;
    total.correct += shard.sums.correct;
  }
  if (!program.Commit({.step = step,
                       .schedule_step = step,
                       .gradient = mean,
                       .buffers = buffers,
                       .sums = total})) {
    std::abort();
  }
  return total;
}

ShardSums EvaluateAll(Program& program) {
  std::vector<std::uint64_t> all(program.info().test_samples);
  std::iota(all.begin(), all.end(), 0);
  return OrDie(
      program.ComputeShard({.kind = TickKind::kEvaluate, .samples = all}, {}, {}, nullptr));
}

}  // namespace pliant::learner
