#include <algorithm>
#include <filesystem>
#include <numeric>
#include <random>
#include <span>
#include <vector>

#include <gtest/gtest.h>

#include "tests/unit/learner/one_learner.h"
#include "trainer/learner/model_file.h"
#include "trainer/learner/samples.h"

namespace pliant::learner {
namespace {

// The demo's model learns its data: a few epochs exceed the demo's required accuracy.
TEST(DigitsTraining, TheDemosModelPasses95PerCent) {
  const std::filesystem::path folder = std::filesystem::path(PLIANT_SOURCE_DIR) / "manifests/demo";
  const auto model = ReadModelFile(folder / "model.yaml");
  ASSERT_TRUE(model) << model.error();
  auto train = ReadSamples(model->data, model->data.train, folder);
  auto test = ReadSamples(model->data, model->data.test, folder);
  ASSERT_TRUE(train && test);
  const auto program =
      TorchProgram::Create(*model, *std::move(train), *std::move(test), {.seed = 1});
  ASSERT_TRUE(program) << program.error();

  constexpr int kEpochs = 4;
  constexpr std::size_t kBatch = 256;
  std::vector<std::uint64_t> order((*program)->info().train_samples);
  std::iota(order.begin(), order.end(), 0);
  std::mt19937_64 random(3);
  std::uint64_t step = 0;
  double first_loss = 0;
  double last_loss = 0;
  for (int epoch = 0; epoch < kEpochs; ++epoch) {
    std::ranges::shuffle(order, random);
    for (std::size_t begin = 0; begin < order.size(); begin += kBatch) {
      const auto batch = std::span(order).subspan(begin, std::min(kBatch, order.size() - begin));
      const ShardSums sums = TrainStep(**program, step, batch, 32);
      last_loss = sums.loss / sums.samples;
      if (step++ == 0) first_loss = last_loss;
    }
  }
  EXPECT_LT(last_loss, first_loss / 4);
  const ShardSums sums = EvaluateAll(**program);
  EXPECT_EQ(sums.samples, 360);
  EXPECT_GT(sums.correct / sums.samples, 0.95);
  RecordProperty("accuracy", std::to_string(sums.correct / sums.samples));
}

}  // namespace
}  // namespace pliant::learner
