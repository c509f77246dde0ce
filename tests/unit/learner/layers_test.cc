#include "trainer/learner/layers.h"

#include <string>
#include <string_view>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "trainer/learner/closest_word.h"

namespace pliant::learner {
namespace {

TEST(Layers, AreNamedByKindAndNumber) {
  EXPECT_THAT(LayerNames({Conv{}, Relu{}, Conv{}, Relu{}, Linear{}}),
              testing::ElementsAre("conv1", "relu1", "conv2", "relu2", "linear1"));
}

TEST(Layers, ShapesFollowFromTheLayers) {
  const auto shapes = InferShapes(
      {3, 9, 7}, {Conv{.out = 8, .kernel = 3, .stride = 2, .padding = 1}, BatchNorm{}, Relu{},
                  MaxPool{.kernel = 2, .stride = 1}, AvgPool{.kernel = 2, .stride = 2}, Flatten{},
                  BatchNorm{}, Linear{.out = 5}});
  ASSERT_TRUE(shapes) << shapes.error().message;
  EXPECT_THAT(*shapes,
              testing::ElementsAre(Shape{8, 5, 4}, Shape{8, 5, 4}, Shape{8, 5, 4}, Shape{8, 4, 3},
                                   Shape{8, 2, 1}, Shape{16}, Shape{16}, Shape{5}));
}

TEST(Layers, AResidualGivesWhatItsLayersGive) {
  const auto shapes = InferShapes(
      {2, 8, 8},
      {Residual{.layers = {Relu{}, Conv{.out = 2, .kernel = 3, .padding = 1}}, .shortcut = {}},
       Residual{.layers = {Conv{.out = 6, .kernel = 2, .stride = 2}},
                .shortcut = {AvgPool{.kernel = 2, .stride = 2}, Conv{.out = 6, .kernel = 1}}},
       Dropout{.rate = 0.5}});
  ASSERT_TRUE(shapes) << shapes.error().message;
  EXPECT_THAT(*shapes, testing::ElementsAre(Shape{2, 8, 8}, Shape{6, 4, 4}, Shape{6, 4, 4}));
}

struct MisfitCase {
  std::string name;
  std::vector<Layer> layers;
  LayerError want;
};

const MisfitCase kMisfits[] = {
    {"a convolution of a row",
     {Flatten{}, Conv{.out = 1, .kernel = 1}},
     {{1},
      "layer conv1: conv needs an image (channels x height x width), but gets 64 values in a row: "
      "put it before flatten and linear"}},
    {"the second pool finds nothing left",
     {MaxPool{.kernel = 8, .stride = 8}, AvgPool{.kernel = 2, .stride = 2}},
     {{1},
      "layer avg_pool1: a kernel of 2 does not fit into 1x1x1 with padding 0: make the kernel "
      "smaller, or pool less before"}},
    {"a linear layer of an image",
     {Linear{.out = 10}},
     {{0}, "layer linear1: linear needs values in a row, but gets 1x8x8: put flatten before it"}},
    {"a residual that grows, without a shortcut",
     {Residual{.layers = {Conv{.out = 4, .kernel = 1}}, .shortcut = {}}},
     {{0},
      "layer residual1: its layers give 4x8x8, but the unchanged input gives 1x8x8, and the two "
      "are added: give it a shortcut such as [conv: {out: 4, kernel: 1}]"}},
    {"a residual and a shortcut that differ",
     {Relu{}, Residual{.layers = {Conv{.out = 4, .kernel = 1}},
                       .shortcut = {Conv{.out = 4, .kernel = 1, .stride = 2}}}},
     {{1},
      "layer residual1: its layers give 4x8x8, but its shortcut gives 4x4x4, and the two are "
      "added: make both equal"}},
    {"a layer in the shortcut of a residual in a residual",
     {Relu{}, Residual{.layers = {Relu{}, Residual{.layers = {Relu{}},
                                                   .shortcut = {BatchNorm{}, Linear{.out = 3}}}},
                       .shortcut = {}}},
     {{1, 0, 1, 1, 1},
      "layer residual1.residual1.shortcut.linear1: linear needs values in a row, but gets 1x8x8: "
      "put flatten before it"}},
};

TEST(Layers, ALayerThatDoesNotFitIsNamed) {
  for (const MisfitCase& misfit : kMisfits) {
    const auto shapes = InferShapes({1, 8, 8}, misfit.layers);
    ASSERT_FALSE(shapes) << misfit.name;
    EXPECT_EQ(shapes.error(), misfit.want) << misfit.name << ": " << shapes.error().message;
  }
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
