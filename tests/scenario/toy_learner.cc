// A learner whose model is a straight line, for tests with real processes. Everything except the
// mathematics is what pliant-learner runs. TOY_EPOCHS sets the duration, TOY_TRAIN_SAMPLES the
// number of samples; TOY_FAIL_AT_STEP makes it fail, TOY_HANG_AT_STEP makes it hang, and
// TOY_FLIP_BIT_AT_STEP flips a bit of its parameters, as a memory error would.

#include <array>
#include <bit>
#include <charconv>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <string>
#include <string_view>
#include <thread>

#include "base/log.h"
#include "trainer/data/permutation.h"
#include "trainer/process/rank_launcher.h"
#include "trainer/process/run_learner.h"
#include "trainer/process/signals.h"
#include "trainer/protocol/program.h"

namespace pliant {
namespace {

constexpr std::size_t kFeatures = 40;
constexpr std::size_t kParameters = kFeatures + 1;  // features and a bias
constexpr std::uint64_t kTrainSamples = 250;        // the last batch of 32 is short
constexpr std::uint64_t kTestSamples = 50;
constexpr float kLearningRate = 0.02F;
constexpr float kMomentum = 0.9F;

std::uint64_t NumberFromEnvironment(const char* name, std::uint64_t otherwise) {
  const char* const text = std::getenv(name);
  if (text == nullptr) return otherwise;
  std::uint64_t value = otherwise;
  std::from_chars(text, text + std::strlen(text), value);
  return value;
}

// Returns a value in [-1, 1] from a hash.
float Uniform(std::uint64_t a, std::uint64_t b) {
  return static_cast<float>(HashWords({a, b}) >> 40U) / static_cast<float>(1U << 23U) - 1.0F;
}

// Least squares with momentum, and a "buffer" that follows the mean of the first feature, as in
// BatchNorm.
class ToyProgram final : public Program {
 public:
  ToyProgram()
      : info_{.train_samples = NumberFromEnvironment("TOY_TRAIN_SAMPLES", kTrainSamples),
              .test_samples = kTestSamples,
              .epochs = NumberFromEnvironment("TOY_EPOCHS", 10),
              .gradient_elements = kParameters,
              .buffer_bytes = sizeof(float),
              .name = "a straight line"},
        fail_at_step_(NumberFromEnvironment("TOY_FAIL_AT_STEP", ~std::uint64_t{0})),
        hang_at_step_(NumberFromEnvironment("TOY_HANG_AT_STEP", ~std::uint64_t{0})),
        flip_bit_at_step_(NumberFromEnvironment("TOY_FLIP_BIT_AT_STEP", ~std::uint64_t{0})) {}

  const ProgramInfo& info() const override { return info_; }

  Result<ShardSums> ComputeShard(const ShardTask& task, std::span<float> gradient,
                                 std::span<std::byte> buffers, GradientSink* sink) override {
    if (task.step >= fail_at_step_) return Invalid("told to fail at this step");
    while (task.step >= hang_at_step_) std::this_thread::sleep_for(std::chrono::hours(1));
    const bool train = task.kind == TickKind::kTrain;
    if (buffers.size() != (train && task.shard == 0 ? info_.buffer_bytes : 0))
      return Invalid("only shard 0 has buffers");
    if (train) std::ranges::fill(gradient, 0.0F);
    ShardSums sums;
    float mean = 0;
    for (const std::uint64_t sample : task.samples) {
      const std::uint64_t key = train ? sample : kTrainSamples + sample;
      std::array<float, kFeatures> features;
      for (std::size_t i = 0; i < kFeatures; ++i) features[i] = Uniform(key, i);
      const float error = Predict(features) - Target(features, key);
      sums.samples += 1;
      sums.loss += static_cast<double>(error * error);
      sums.correct += error * error < 0.01F ? 1 : 0;
      mean += features[0] / static_cast<float>(task.samples.size());
      if (!train) continue;
      for (std::size_t i = 0; i < kFeatures; ++i) gradient[i] += 2 * error * features[i];
      gradient[kFeatures] += 2 * error;
    }
    if (sink != nullptr)
      sink->OnReady({.begin = kFeatures, .size = 1});  // the rest is final at
                                                       // the end
    if (!buffers.empty()) {
      const float followed = 0.9F * running_mean_ + 0.1F * mean;
      std::memcpy(buffers.data(), &followed, sizeof followed);
    }
    return sums;
  }

  Status Commit(const CommitTask& task) override {
    for (std::size_t i = 0; i < kParameters; ++i) {
      momentum_[i] = kMomentum * momentum_[i] + task.gradient[i];
      parameters_[i] -= kLearningRate * momentum_[i];
    }
    std::memcpy(&running_mean_, task.buffers.data(), sizeof running_mean_);
    if (task.step == flip_bit_at_step_) {
      const auto word = std::bit_cast<std::uint32_t>(parameters_[3]);
      parameters_[3] = std::bit_cast<float>(word ^ 1U);
    }
    return {};
  }

  StateDict State() override {
    const auto bytes = [](auto& values) { return std::as_writable_bytes(std::span(values)); };
    return {{"model.weight", DType::kFloat32, {kParameters}, bytes(parameters_)},
            {"model.running_mean",
             DType::kFloat32,
             {},
             std::as_writable_bytes(std::span(&running_mean_, 1))},
            {"optimizer.momentum", DType::kFloat32, {kParameters}, bytes(momentum_)}};
  }
  Status LoadedState() override { return {}; }

 private:
  float Predict(const std::array<float, kFeatures>& features) const {
    float sum = parameters_[kFeatures];
    for (std::size_t i = 0; i < kFeatures; ++i) sum += parameters_[i] * features[i];
    return sum;
  }
  static float Target(const std::array<float, kFeatures>& features, std::uint64_t key) {
    float sum = 0.5F + 0.05F * Uniform(key, kFeatures);
    for (std::size_t i = 0; i < kFeatures; ++i) sum += Uniform(i, 0) * features[i];
    return sum;
  }

  const ProgramInfo info_;
  const std::uint64_t fail_at_step_;
  const std::uint64_t hang_at_step_;
  const std::uint64_t flip_bit_at_step_;
  std::array<float, kParameters> parameters_{};
  std::array<float, kParameters> momentum_{};
  float running_mean_ = 0;
};

}  // namespace
}  // namespace pliant

int main() {
  using namespace pliant;
  log::Configure(log::Format::kJson, log::Level::kInfo);
  LaunchRanks(std::getenv);
  HoldStopSignals();
  const GetEnvironment get = [](const char* name) { return std::getenv(name); };
  const auto environment = ReadLearnerEnvironment(get);
  if (!environment) return FailLearner(TerminationLogPath(get), environment.error());
  // The learner's own defaults; the job may set other values.
  const auto training = ResolveTraining(
      *environment, {.global_batch_size = environment->global_batch_size.value_or(32),
                     .seed = environment->seed.value_or(7)});
  if (!training) return FailLearner(TerminationLogPath(get), training.error());
  ToyProgram program;
  return RunLearner(program,
                    {.environment = *environment, .training = *training, .framework = "toy 1"});
}
