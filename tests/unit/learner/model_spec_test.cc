#include "trainer/learner/model_spec.h"

#include <string>
#include <string_view>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "trainer/learner/closest_word.h"

namespace pliant::learner {
namespace {

TEST(ModelSpec, LayersAreNamedByKindAndNumber) {
  EXPECT_THAT(LayerNames({Conv{}, Relu{}, Conv{}, Relu{}, Linear{}}),
              testing::ElementsAre("conv1", "relu1", "conv2", "relu2", "linear1"));
}

TEST(ModelSpec, ShapesFollowFromTheLayers) {
  const auto shapes = InferShapes(
      {3, 9, 7}, {Conv{.out = 8, .kernel = 3, .stride = 2, .padding = 1}, BatchNorm{}, Relu{},
                  MaxPool{.kernel = 2, .stride = 1}, AvgPool{.kernel = 2, .stride = 2}, Flatten{},
                  BatchNorm{}, Linear{.out = 5}});
  ASSERT_TRUE(shapes) << shapes.error().message;
  EXPECT_THAT(*shapes,
              testing::ElementsAre(Shape{8, 5, 4}, Shape{8, 5, 4}, Shape{8, 5, 4}, Shape{8, 4, 3},
                                   Shape{8, 2, 1}, Shape{16}, Shape{16}, Shape{5}));
}

struct MisfitCase {
  std::string name;
  std::vector<Layer> layers;
  LayerError want;
};

const MisfitCase kMisfits[] = {
    {"a convolution of a row",
     {Flatten{}, Conv{.out = 1, .kernel = 1}},
     {1,
      "layer conv1: conv needs an image (channels x height x width), but gets 64 values in a row: "
      "put it before flatten and linear"}},
    {"the second pool finds nothing left",
     {MaxPool{.kernel = 8, .stride = 8}, AvgPool{.kernel = 2, .stride = 2}},
     {1,
      "layer avg_pool1: a kernel of 2 does not fit into 1x1x1 with padding 0: make the kernel "
      "smaller, or pool less before"}},
    {"a linear layer of an image",
     {Linear{.out = 10}},
     {0, "layer linear1: linear needs values in a row, but gets 1x8x8: put flatten before it"}},
};

TEST(ModelSpec, ALayerThatDoesNotFitIsNamed) {
  for (const MisfitCase& misfit : kMisfits) {
    const auto shapes = InferShapes({1, 8, 8}, misfit.layers);
    ASSERT_FALSE(shapes) << misfit.name;
    EXPECT_EQ(shapes.error(), misfit.want) << misfit.name << ": " << shapes.error().message;
  }
}

TEST(ModelSpec, AgreesWithTheJobOrNamesBothValues) {
  const TrainSpec train = {.batch_size = 128, .seed = 3};
  EXPECT_TRUE(CheckAgainstJob(train, {}));
  EXPECT_TRUE(CheckAgainstJob({}, {.global_batch_size = 256, .seed = 4}));
  EXPECT_TRUE(CheckAgainstJob(train, {.global_batch_size = 128, .seed = 3}));
  EXPECT_EQ(CheckAgainstJob(train, {.global_batch_size = 256, .seed = 3}).error().message,
            "train.batchSize of the model is 128, but globalBatchSize of the job is 256: remove "
            "one or make them equal");
  EXPECT_EQ(CheckAgainstJob(train, {.seed = 4}).error().message,
            "train.seed of the model is 3, but seed of the job is 4: remove one or make them "
            "equal");
}

TEST(ClosestWord, IsTheLeastDistantOneWithinAThirdOfTheLetters) {
  const std::vector<std::string_view> words = {"kernel", "stride", "out"};
  EXPECT_EQ(ClosestWord("kernle", words), "kernel");
  EXPECT_EQ(ClosestWord("Stride", words), "stride");
  EXPECT_EQ(ClosestWord("ou", words), "out");
  EXPECT_EQ(ClosestWord("channels", words), std::nullopt);
  EXPECT_EQ(ClosestWord("", words), std::nullopt);
}

}  // namespace
}  // namespace pliant::learner
