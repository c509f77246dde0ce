#include "tests/simulation/toy_program.h"

#include <algorithm>
#include <cstring>
#include <functional>
#include <utility>

#include <gtest/gtest.h>

#include "base/check.h"
#include "base/format.h"
#include "trainer/checkpoint/checkpoint.h"
#include "trainer/collective/tree.h"
#include "trainer/data/batch_rule.h"
#include "trainer/data/permutation.h"

namespace pliant::sim {
namespace {

constexpr std::byte kBallast{7};

// Returns a value in [-1, 1) of full precision, so that sums depend on their order.
float Noise(std::uint64_t a, std::uint64_t b) {
  return static_cast<float>(HashWords({a, b}) >> 40) / static_cast<float>(1 << 23) - 1.0F;
}

template <std::size_t N, typename T>
TensorView View(std::string name, DType dtype, std::array<T, N>& values) {
  return {.name = std::move(name),
          .dtype = dtype,
          .shape = {static_cast<std::int64_t>(N)},
          .bytes = std::as_writable_bytes(std::span(values))};
}

// Reports parts of a shard's gradient in an order of its own. Some parts of some shards go
// unreported.
void SayReady(const ShardTask& task, GradientSink& sink) {
  std::vector<ElementRange> parts;
  for (std::size_t begin = 0; begin < ToyProgram::kParameters;) {
    const std::size_t size = std::min<std::size_t>(1 + HashWords({task.seed, begin}) % 20,
                                                   ToyProgram::kParameters - begin);
    parts.push_back({.begin = begin, .size = size});
    begin += size;
  }
  std::ranges::sort(
      parts, {}, [&](const ElementRange& part) { return HashWords({task.seed, part.begin, 1}); });
  for (const ElementRange& part : parts) {
    if (HashWords({task.seed, part.begin, 2}) % 4 != 0) sink.OnReady(part);
  }
}

// Some shards weigh nothing, and some lack one of the names.
void Weigh(std::uint64_t sample, float score, ShardSums& sums) {
  sums.weight = sums.weight.value_or(0) + static_cast<double>(sample % 3);
  sums.named["scores"] += score;
  if (sample % 5 == 0) sums.named["fifth/scores"] += static_cast<double>(score) * score;
}

// |values|² of at most one chunk, in eight lanes.
double Square(std::span<const float> values) {
  std::array<double, 8> lanes{};
  for (std::size_t i = 0; i < values.size(); ++i) {
    lanes[i % 8] += static_cast<double>(values[i]) * values[i];
  }
  return ((lanes[0] + lanes[4]) + (lanes[2] + lanes[6])) +
         ((lanes[1] + lanes[5]) + (lanes[3] + lanes[7]));
}

}  // namespace

ToyProgram::ToyProgram(const DataSpec& data, std::size_t ballast_bytes, Habits habits)
    : info_{.train_samples = data.train_samples,
            .test_samples = data.test_samples,
            .epochs = data.epochs,
            .gradient_elements = kParameters,
            .buffer_bytes = sizeof(buffers_),
            .name = "toy",
            .wants_evaluation_results = habits.wants_evaluation_results,
            .max_steps = data.max_steps,
            .evaluate_every = data.evaluate_every},
      habits_(habits),
      ballast_(ballast_bytes > 0 ? 4 : 0, std::vector(ballast_bytes / 4, kBallast)) {
  for (std::size_t i = 0; i < kParameters; ++i) weights_[i] = Noise(data.seed, i);
}

Result<ShardSums> ToyProgram::ComputeShard(const ShardTask& task, std::span<float> gradient,
                                           std::span<std::byte> buffers, GradientSink* sink) {
  const bool training = task.kind == TickKind::kTrain;
  CHECK(!training || task.step == steps(), "a step is done on its state");
  CHECK(buffers.size() == (training && task.shard == 0 ? sizeof(buffers_) : 0), "as promised");
  ShardSums sums{.samples = static_cast<double>(task.samples.size())};
  for (float& element : gradient) element = 0;
  for (const std::uint64_t sample : task.samples) {
    float score = 0;
    for (std::size_t i = 0; i < kParameters; ++i) {
      const float x = Noise(sample, i) + buffers_[i % kBuffers] * 0.01F;
      score += weights_[i] * x;
      if (!gradient.empty())
        gradient[i] += x + weights_[i] * Noise(task.seed ^ habits_.process_seed, i) * 0.1F;
    }
    sums.loss += static_cast<double>(score) * score;
    sums.correct += score > 0 ? 1 : 0;
    if (habits_.weighs) Weigh(sample, score, sums);
  }
  if (sink != nullptr) SayReady(task, *sink);
  if (!buffers.empty()) {
    std::array<float, kBuffers> next = buffers_;
    for (std::size_t i = 0; i < kBuffers; ++i) {
      next[i] = next[i] * 0.9F + Noise(task.samples.front(), i) * 0.1F;
    }
    std::memcpy(buffers.data(), next.data(), buffers.size());
  }
  return sums;
}

Status ToyProgram::Commit(const CommitTask& task) {
  CHECK(task.step == steps(), "steps are committed in their order");
  const float rate =
      (task.schedule_step % 50 == 49 ? 0.04F : 0.05F) * (task.doublings % 2 == 1 ? 1.25F : 1);
  const auto factor = static_cast<float>(task.mean_factor);
  for (std::size_t i = 0; i < kParameters; ++i) {
    momentum_[i] = momentum_[i] * 0.9F + task.gradient[i] * factor;
    weights_[i] -= momentum_[i] * rate;
  }
  std::size_t place = 0;
  for (const auto& [name, sum] : task.sums.named) {
    momentum_[++place] += static_cast<float>(sum / task.sums.samples) * 0.01F;
  }
  CHECK(task.buffers.size() == sizeof(buffers_), "the buffers of shard 0 come with the commit");
  std::memcpy(buffers_.data(), task.buffers.data(), task.buffers.size());
  ++steps_;
  return {};
}

Status ToyProgram::Evaluated(const EvaluationTask& task) {
  CHECK(task.step == steps(), "an evaluation is of the state");
  const ShardSums& sums = task.sums;
  if (sums.total_weight() > 0)
    momentum_[0] += static_cast<float>(sums.loss / sums.total_weight()) * 0.01F;
  ++evaluations_;
  return {};
}

StateDict ToyProgram::State() {
  StateDict state = {View("model.running", DType::kFloat32, buffers_),
                     View("model.weights", DType::kFloat32, weights_),
                     View("optimizer.momentum", DType::kFloat32, momentum_),
                     {.name = "optimizer.steps",
                      .dtype = DType::kInt64,
                      .shape = {},
                      .bytes = std::as_writable_bytes(std::span(&steps_, 1))},
                     {.name = "optimizer.evaluations",
                      .dtype = DType::kInt64,
                      .shape = {},
                      .bytes = std::as_writable_bytes(std::span(&evaluations_, 1))}};
  for (std::size_t i = 0; i < ballast_.size(); ++i) {
    state.push_back({.name = Format("optimizer.ballast{}", i),
                     .dtype = DType::kUInt8,
                     .shape = {static_cast<std::int64_t>(ballast_[i].size())},
                     .bytes = ballast_[i]});
  }
  return state;
}

Status ToyProgram::LoadedState() {
  const auto right = [](std::byte byte) { return byte == kBallast; };
  for (const std::vector<std::byte>& part : ballast_) {
    CHECK(std::ranges::all_of(part, right), "the whole state was transferred");
  }
  return {};
}

std::uint64_t ToyProgram::Hash() {
  std::uint64_t hash = 14695981039346656037U;
  for (const TensorView& tensor : State()) {
    if (tensor.name.starts_with("optimizer.ballast")) continue;
    for (const std::byte byte : tensor.bytes) {
      hash = (hash ^ static_cast<std::uint64_t>(byte)) * 1099511628211U;
    }
  }
  return hash;
}

Reference ComputeReference(Schedule schedule, Habits habits) {
  ToyProgram program(schedule.spec(), 0, habits);
  Reference reference;
  reference.hash_at[program.position()] = program.Hash();
  NoiseWindow noise = reference.noise_after[0];
  ShardSums evaluation;
  const DataSpec spec = schedule.spec();
  BatchSegments batches;
  std::vector<std::uint64_t> seen(schedule.spec().train_samples, 0);
  for (Tick tick = 0; tick < schedule.total_ticks() && !program.wishes().end; ++tick) {
    const TickPlan plan = schedule.At(tick);
    const int shards = schedule.ShardsAt(tick);
    reference.ticks = tick + 1;
    // Decided from what is known before the epoch's last tick.
    if (plan.last_of_epoch && spec.max_doublings > 0 && tick + 1 < schedule.total_ticks()) {
      Append(batches, spec, plan.epoch + 1, NextDoublings(spec, plan.doublings, noise));
      schedule = *schedule.With(batches);
    }
    if (plan.kind == TickKind::kEvaluate) {
      if (!habits.wants_evaluation_results) continue;
      std::vector<ShardSums> sums;
      for (int shard = 0; shard < shards; ++shard) {
        sums.push_back(*program.ComputeShard(schedule.TaskOf(tick, shard), {}, {}, nullptr));
      }
      evaluation = evaluation + SumTree(std::span<const ShardSums>(sums), std::plus<ShardSums>());
      if (!plan.last_of_kind) continue;
      EXPECT_TRUE(program.Evaluated(
          {.epoch = plan.epoch, .step = plan.step, .sums = std::exchange(evaluation, {})}));
      reference.hash_at[program.position()] = program.Hash();
      continue;
    }
    std::vector<std::vector<float>> leaves;
    std::vector<std::byte> buffers(program.info().buffer_bytes);
    ShardSpread spread;
    std::vector<ShardSums> sums;
    for (int shard = 0; shard < shards; ++shard) {
      const ShardTask task = schedule.TaskOf(tick, shard);
      for (const std::uint64_t sample : task.samples) ++seen[sample];
      std::vector<float> gradient(ToyProgram::kParameters);
      sums.push_back(*program.ComputeShard(
          task, gradient, shard == 0 ? std::span(buffers) : std::span<std::byte>(), nullptr));
      spread.Add(task.samples.size(), Square(gradient));
      leaves.push_back(std::move(gradient));
    }
    std::vector<float> root = SumTree(std::span<const std::vector<float>>(leaves),
                                      [](const auto& left, const auto& right) {
                                        std::vector<float> sum(left.size());
                                        for (std::size_t i = 0; i < sum.size(); ++i)
                                          sum[i] = left[i] + right[i];
                                        return sum;
                                      });
    for (float& element : root) element /= static_cast<float>(plan.samples);
    const ShardSums total = SumTree(std::span<const ShardSums>(sums), std::plus<ShardSums>());
    EXPECT_TRUE(program.Commit({.epoch = plan.epoch,
                                .step = plan.step,
                                .schedule_step = plan.schedule_step,
                                .doublings = plan.doublings,
                                .gradient = root,
                                .mean_factor = MeanFactor(static_cast<double>(plan.samples), total),
                                .buffers = buffers,
                                .sums = total}));
    if (plan.step % 16 == 0 && !habits.weighs) noise.Add(spread, plan.samples, Square(root));
    reference.noise_after[plan.step + 1] = noise;
    reference.hash_at[program.position()] = program.Hash();
  }
  for (const std::uint64_t times : seen) {
    if (reference.ticks < schedule.total_ticks()) break;
    EXPECT_LE(times, schedule.epochs()) << "each sample is used once per epoch";
    EXPECT_GE(times, schedule.EpochOf(schedule.total_steps())) << "an epoch uses each sample";
  }
  reference.schedule = schedule;
  reference.parameters_sha256 = ParametersSha256(program.State());
  return reference;
}

}  // namespace pliant::sim
