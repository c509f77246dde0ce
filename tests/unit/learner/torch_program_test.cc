#include "trainer/learner/torch_program.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <iostream>
#include <memory>
#include <numeric>
#include <random>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/format.h"
#include "tests/unit/learner/one_learner.h"
#include "trainer/learner/model_file.h"

namespace pliant::learner {
namespace {

ShardTask Task(int shard, std::vector<std::uint64_t> samples) {
  return {.epoch = 0, .step = 3, .shard = shard, .samples = std::move(samples)};
}

TEST(TorchProgram, StateListsParametersInGradientOrderThenBuffersThenTheOptimizer) {
  const auto program = MakeProgram(SmallModel(), 1);
  std::vector<std::string> names;
  std::size_t parameter_bytes = 0;
  std::size_t buffer_bytes = 0;
  for (const TensorView& view : program->State()) {
    names.push_back(view.name);
    const bool buffer = view.name.contains("running_") || view.name.contains("tracked");
    if (buffer) buffer_bytes += view.bytes.size();
    if (!buffer && view.name.starts_with("model.")) parameter_bytes += view.bytes.size();
  }
  EXPECT_THAT(names,
              testing::ElementsAre(
                  "model.conv1.weight", "model.conv1.bias", "model.batch_norm1.weight",
                  "model.batch_norm1.bias", "model.conv2.weight", "model.conv2.bias",
                  "model.linear1.weight", "model.linear1.bias", "model.batch_norm2.weight",
                  "model.batch_norm2.bias", "model.linear2.weight", "model.linear2.bias",
                  "model.batch_norm1.running_mean", "model.batch_norm1.running_var",
                  "model.batch_norm1.num_batches_tracked", "model.batch_norm2.running_mean",
                  "model.batch_norm2.running_var", "model.batch_norm2.num_batches_tracked",
                  "optimizer.conv1.weight.momentum", "optimizer.conv1.bias.momentum",
                  "optimizer.batch_norm1.weight.momentum", "optimizer.batch_norm1.bias.momentum",
                  "optimizer.conv2.weight.momentum", "optimizer.conv2.bias.momentum",
                  "optimizer.linear1.weight.momentum", "optimizer.linear1.bias.momentum",
                  "optimizer.batch_norm2.weight.momentum", "optimizer.batch_norm2.bias.momentum",
                  "optimizer.linear2.weight.momentum", "optimizer.linear2.bias.momentum",
                  "optimizer.updates", "optimizer.non_finite_in_a_row"));
  EXPECT_EQ(parameter_bytes, program->info().gradient_elements * sizeof(float));
  EXPECT_EQ(buffer_bytes, program->info().buffer_bytes);
}

TEST(TorchProgram, TheSeedAloneDecidesTheFirstParameters) {
  const auto first = MakeProgram(SmallModel(), 1);
  const auto same = MakeProgram(SmallModel(), 1);
  const auto other = MakeProgram(SmallModel(), 2);
  EXPECT_EQ(Bytes(*first), Bytes(*same));
  EXPECT_NE(Bytes(*first), Bytes(*other));
}

TEST(TorchProgram, ComputingChangesNoCommittedState) {
  const auto program = MakeProgram(SmallModel(), 1);
  const auto before = Bytes(*program);
  const Shard first = Compute(*program, Task(0, {1, 2, 3, 4}));
  Compute(*program, Task(5, {5, 6, 7}));
  EvaluateAll(*program);
  EXPECT_EQ(Bytes(*program), before);
  // A shard starts from the committed buffers, whatever was computed before it.
  const Shard again = Compute(*program, Task(0, {1, 2, 3, 4}));
  EXPECT_EQ(again.gradient, first.gradient);
  EXPECT_EQ(again.buffers, first.buffers);
  EXPECT_EQ(again.sums, first.sums);
}

// Records ranges reported as final, with their values at that time.
class RecordingSink final : public GradientSink {
 public:
  explicit RecordingSink(std::span<const float> gradient) : gradient_(gradient) {}
  void OnReady(ElementRange range) override {
    if (elements_ == 0) first_layer_was_open_ = std::isnan(gradient_.front());
    elements_ += range.size;
    std::ranges::copy(gradient_.subspan(range.begin, range.size),
                      said_.begin() + static_cast<std::ptrdiff_t>(range.begin));
  }
  std::size_t elements() const { return elements_; }
  bool first_layer_was_open() const { return first_layer_was_open_; }
  const std::vector<float>& said() const { return said_; }

 private:
  const std::span<const float> gradient_;
  std::vector<float> said_ = std::vector<float>(gradient_.size());
  std::size_t elements_ = 0;
  bool first_layer_was_open_ = false;  // whether it was still open when the last layer's gradient
                                       // was final
};

TEST(TorchProgram, ReportsFinalRangesDuringTheBackwardPass) {
  const auto program = MakeProgram(SmallModel(), 1);
  std::vector<float> gradient(program->info().gradient_elements, std::nanf(""));
  RecordingSink sink(gradient);
  ASSERT_TRUE(program->ComputeShard(Task(1, {1, 2, 3, 4}), gradient, {}, &sink));
  EXPECT_TRUE(sink.first_layer_was_open()) << "buckets are sent before the backward pass has ended";
  EXPECT_EQ(sink.elements(), gradient.size());
  EXPECT_EQ(sink.said(), gradient) << "a range reported as final was not written again";
}

TEST(TorchProgram, AnEmptyShardAddsNothing) {
  const auto program = MakeProgram(SmallModel(), 1);
  const Shard shard = Compute(*program, Task(9, {}));
  EXPECT_EQ(shard.sums, ShardSums{});
  EXPECT_THAT(shard.gradient, testing::Each(0.0F));
}

TEST(TorchProgram, CommitMovesParametersByTheFormulaAndTakesTheBuffers) {
  const ModelSpec model = SmallModel();
  const auto program = MakeProgram(model, 1);
  const Shard shard = Compute(*program, Task(0, {1, 2, 3, 4}));
  const StateDict state = program->State();
  std::vector<float> want;
  for (const TensorView& view : state) {
    if (want.size() == program->info().gradient_elements)
      break;  // parameters come first in the
              // state
    std::vector<float> values(view.bytes.size() / sizeof(float));
    std::memcpy(values.data(), view.bytes.data(), view.bytes.size());
    for (const float value : values) {
      const float descent =
          shard.gradient[want.size()] + static_cast<float>(model.train.weight_decay) * value;
      want.push_back(value - static_cast<float>(model.train.learning_rate) * descent);
    }
  }
  ASSERT_TRUE(program->Commit({.step = 3, .gradient = shard.gradient, .buffers = shard.buffers}));
  std::size_t at = 0;
  std::vector<std::byte> buffers;
  for (const TensorView& view : state) {
    if (view.name.starts_with("optimizer.")) break;
    if (at == want.size()) {
      buffers.insert(buffers.end(), view.bytes.begin(), view.bytes.end());
      continue;
    }
    const std::size_t count = view.bytes.size() / sizeof(float);
    EXPECT_EQ(std::memcmp(view.bytes.data(), &want[at], view.bytes.size()), 0) << view.name;
    at += count;
  }
  EXPECT_EQ(buffers, shard.buffers);
  const TensorView& tracked = state[14];
  ASSERT_EQ(tracked.name, "model.batch_norm1.num_batches_tracked");
  std::int64_t count = 0;
  std::memcpy(&count, tracked.bytes.data(), sizeof(count));
  EXPECT_EQ(count, 1);
}

// The state of one program, copied into another through its views, continues bit for bit.
TEST(TorchProgram, StateMovesToAnotherProgram) {
  const auto from = MakeProgram(SmallModel(), 1);
  std::vector<std::uint64_t> samples(48);
  std::iota(samples.begin(), samples.end(), 0);
  TrainStep(*from, 0, samples, 4);
  const auto to = MakeProgram(SmallModel(), 2);
  const auto bytes = Bytes(*from);
  const StateDict state = to->State();
  ASSERT_EQ(state.size(), bytes.size());
  for (std::size_t i = 0; i < state.size(); ++i) {
    ASSERT_EQ(state[i].bytes.size(), bytes[i].size());
    std::memcpy(state[i].bytes.data(), bytes[i].data(), bytes[i].size());
  }
  ASSERT_TRUE(to->LoadedState());
  EXPECT_EQ(EvaluateAll(*to), EvaluateAll(*from));
  TrainStep(*from, 1, samples, 4);
  TrainStep(*to, 1, samples, 4);
  EXPECT_EQ(Bytes(*to), Bytes(*from));
}

// Compares the gradient with differences of the loss, for a few parameters of every tensor. Without
// relu and max_pool, because a difference may step across their kinks.
TEST(TorchProgram, GradientIsTheSlopeOfTheLoss) {
  ModelSpec model = SmallModel();
  model.layers = {Conv{.out = 4, .kernel = 3, .padding = 1},
                  BatchNorm{},
                  Residual{.layers = {Conv{.out = 3, .kernel = 3, .padding = 1}, BatchNorm{}},
                           .shortcut = {Conv{.out = 3, .kernel = 1}}},
                  Residual{.layers = {Conv{.out = 3, .kernel = 1}}, .shortcut = {}},
                  AvgPool{.kernel = 2, .stride = 2},
                  Flatten{},
                  Dropout{.rate = 0.25},
                  Linear{.out = 10}};
  model.train.label_smoothing = 0.1;
  model.data.augment = {.crop_padding = 1, .horizontal_flip = true};
  const auto program = MakeProgram(model, 1);
  const ShardTask task = Task(1, {1, 2, 3, 4, 5, 6, 7, 8});
  const std::vector<float> gradient = Compute(*program, task).gradient;
  constexpr float kStep = 1e-2F;
  std::size_t begin = 0;
  for (const TensorView& view : program->State()) {
    if (begin == gradient.size()) break;
    auto* values = reinterpret_cast<float*>(view.bytes.data());
    const std::size_t count = view.bytes.size() / sizeof(float);
    for (std::size_t i = 0; i < count; i += std::max<std::size_t>(count / 3, 1)) {
      const float value = values[i];
      values[i] = value + kStep;
      const double above = Compute(*program, task).sums.loss;
      values[i] = value - kStep;
      const double below = Compute(*program, task).sums.loss;
      values[i] = value;
      EXPECT_NEAR(gradient[begin + i], (above - below) / (2 * kStep), 0.05)
          << view.name << " at " << i;
    }
    begin += count;
  }
  EXPECT_EQ(begin, gradient.size());
}

TEST(TorchProgram, ABatchTooSmallToNormalizeIsInvalid) {
  const auto program = MakeProgram(SmallModel(), 1);
  std::vector<float> gradient(program->info().gradient_elements);
  const auto sums = program->ComputeShard(Task(4, {1}), gradient, {}, nullptr);
  ASSERT_FALSE(sums);
  EXPECT_EQ(sums.error(),
            (Error{ErrorCode::kInvalid,
                   "shard 4 of step 3 has 1 sample, too few for batch_norm: use fewer logical "
                   "shards"}));
}

// A shard's loss that is not a number is passed on unchanged: the decision is made on the sum of
// all shards, so that all learners decide alike.
TEST(TorchProgram, ALossThatIsNotFiniteIsForTheCommitToJudge) {
  ModelSpec model = SmallModel();
  model.train.learning_rate = 1e30;
  const auto program = MakeProgram(model, 1);
  const std::vector<float> gradient(program->info().gradient_elements, 1.0F);
  const Shard shard = Compute(*program, Task(0, {1, 2, 3, 4}));
  for (int step = 0; step < 2; ++step) {
    ASSERT_TRUE(program->Commit({.gradient = gradient, .buffers = shard.buffers}));
  }
  const Shard diverged = Compute(*program, Task(0, {1, 2, 3, 4}));
  EXPECT_FALSE(std::isfinite(diverged.sums.loss));
  const auto before = Bytes(*program);
  const Status status = program->Commit(
      {.step = 3, .gradient = gradient, .buffers = diverged.buffers, .sums = diverged.sums});
  ASSERT_FALSE(status);
  EXPECT_THAT(status.error().message, testing::HasSubstr("step 3 cannot be taken, its loss is "));
  EXPECT_EQ(Bytes(*program), before);
}

TEST(TorchProgram, SamplesOfAnotherSizeAreRefused) {
  const auto program =
      TorchProgram::Create(SmallModel(), RandomDigits(4, 1),
                           Samples{.shape = {1, 2, 2}, .pixels = {}, .labels = {}}, {});
  ASSERT_FALSE(program);
  EXPECT_EQ(program.error().message,
            "input: the images are 1x2x2, but the model takes 1x8x8: expected [1, 2, 2] or [4]");
}

// FNV-1a of a shard's gradient, buffers and sums, after `history` other allocations.
std::uint64_t ShardDigest(std::uint64_t history) {
  std::mt19937_64 random(history);
  std::vector<std::unique_ptr<std::vector<char>>> kept;
  for (std::uint64_t i = 0; i < 100 * history; ++i) {
    kept.push_back(std::make_unique<std::vector<char>>(random() % 100'000, 'x'));
    if (random() % 2 == 0) kept[random() % kept.size()].reset();
  }
  const auto program = MakeProgram(SmallModel(), 5);
  for (std::uint64_t i = 0; i < history; ++i) Compute(*program, Task(1, {i, i + 7, i + 20}));
  const Shard shard = Compute(*program, Task(0, {8, 1, 40, 22, 3}));
  std::uint64_t hash = 0xcbf29ce484222325;
  const auto add = [&hash](std::span<const std::byte> bytes) {
    for (const std::byte byte : bytes) {
      hash = (hash ^ static_cast<std::uint64_t>(byte)) * 0x100000001b3;
    }
  };
  add(std::as_bytes(std::span(shard.gradient)));
  add(shard.buffers);
  for (const double sum : {shard.sums.samples, shard.sums.loss, shard.sums.correct}) {
    add(std::as_bytes(std::span(&sum, 1)));
  }
  return hash;
}

std::string DigestOfAnotherProcess(int history) {
  const std::string self = std::filesystem::read_symlink("/proc/self/exe").string();
  FILE* pipe = popen(Format("'{}' --shard-digest {}", self, history).c_str(), "r");
  if (pipe == nullptr) return "popen failed";
  char line[64] = {};
  const bool read = std::fgets(line, sizeof(line), pipe) != nullptr;
  return pclose(pipe) == 0 && read ? line : "child failed";
}

TEST(TorchProgram, AShardGivesTheSameBitsInEveryProcess) {
  const std::string here = Format("{:016x}\n", ShardDigest(0));
  for (const int history : {1, 3, 7}) {
    EXPECT_EQ(DigestOfAnotherProcess(history), here) << "history " << history;
  }
  EXPECT_EQ(Format("{:016x}\n", ShardDigest(5)), here);
  std::uint64_t in_a_thread = 0;
  std::thread([&in_a_thread] { in_a_thread = ShardDigest(2); }).join();
  EXPECT_EQ(Format("{:016x}\n", in_a_thread), here);
}

}  // namespace
}  // namespace pliant::learner

int main(int argc, char** argv) {
  if (argc == 3 && std::string_view(argv[1]) == "--shard-digest") {
    std::cout << pliant::Format("{:016x}\n",
                                pliant::learner::ShardDigest(std::strtoull(argv[2], nullptr, 10)));
    return 0;
  }
  testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
