#include "trainer/learner/model_file.h"

#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace pliant::learner {
namespace {

constexpr char kGood[] = R"(name: small
input: [1, 8, 8]
layers:
  - conv: {out: 4, kernel: 3, padding: 1}
  - batch_norm
  - relu
  - max_pool: {kernel: 2}
  - avg_pool: {kernel: 2, stride: 1}
  - flatten
  - linear: {out: 10}
train: {epochs: 3, learningRate: 0.1, momentum: 0.9, weightDecay: 0.001, batchSize: 64, seed: 7}
data: {kind: digits, train: a.csv, test: b.csv}
)";

std::string Replace(std::string text, const std::string& from, const std::string& to) {
  const std::size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return at == std::string::npos ? text : text.replace(at, from.size(), to);
}

TEST(ModelFile, BecomesAValue) {
  const auto model = ParseModel(kGood, "model.yaml");
  ASSERT_TRUE(model) << model.error();
  EXPECT_EQ(*model, (ModelSpec{.name = "small",
                               .input = {1, 8, 8},
                               .layers = {Conv{.out = 4, .kernel = 3, .padding = 1}, BatchNorm{},
                                          Relu{}, MaxPool{.kernel = 2, .stride = 2},
                                          AvgPool{.kernel = 2, .stride = 1}, Flatten{}, Linear{10}},
                               .train = {.epochs = 3,
                                         .learning_rate = 0.1,
                                         .momentum = 0.9,
                                         .weight_decay = 0.001,
                                         .batch_size = 64,
                                         .seed = 7},
                               .data = {.train = "a.csv", .test = "b.csv"}}));
}

TEST(ModelFile, WhatMayBeLeftOutHasADefault) {
  const auto model = ParseModel(
      Replace(kGood, ", momentum: 0.9, weightDecay: 0.001, batchSize: 64, seed: 7", ""), "m");
  ASSERT_TRUE(model) << model.error();
  EXPECT_EQ(model->train, (TrainSpec{.epochs = 3, .learning_rate = 0.1}));
}

struct WrongCase {
  std::string name;
  std::string from;  // replaced in the good text
  std::string to;
  std::string want;  // the whole message
};

const WrongCase kWrongCases[] = {
    {"a misspelt key of the top",
     "layers:", "layer:", "m:3:1: unknown key 'layer': did you mean 'layers'?"},
    {"a misspelt setting", "learningRate", "learningrate",
     "m:11:20: train: unknown key 'learningrate': did you mean 'learningRate'?"},
    {"a setting like no other", "momentum", "colour",
     "m:11:39: train: unknown key 'colour': expected one of epochs, learningRate, momentum, "
     "weightDecay, batchSize, seed"},
    {"a misspelt layer", "max_pool", "maxpool",
     "m:7:5: layers: unknown layer 'maxpool': did you mean 'max_pool'?"},
    {"a setting given twice", "epochs: 3", "epochs: 3, epochs: 4",
     "m:11:20: train: epochs is given twice"},
    {"a setting that is missing", "out: 4, ", "", "m:4:11: conv: out is missing"},
    {"a part that is missing", "name: small", "", "m:2:1: name is missing"},
    {"a word for a number", "kernel: 3", "kernel: three",
     "m:4:28: conv: kernel: expected a whole number of 1 to 255, not 'three'"},
    {"a fraction for a whole number", "epochs: 3", "epochs: 2.5",
     "m:11:17: train: epochs: expected a whole number of 1 to 1000000000, not '2.5'"},
    {"a padding beyond the kernel", "padding: 1", "padding: 3",
     "m:4:40: conv: padding: expected a whole number of 0 to 2, not '3'"},
    {"a learning rate of nothing", "learningRate: 0.1", "learningRate: 0",
     "m:11:34: train: learningRate: expected a number above 0 and below 1000, not '0'"},
    {"a momentum of one", "momentum: 0.9", "momentum: 1",
     "m:11:49: train: momentum: expected a number of at least 0 and below 1, not '1'"},
    {"a learning rate that is no number", "learningRate: 0.1", "learningRate: .nan",
     "m:11:34: train: learningRate: expected a number above 0 and below 1000, not '.nan'"},
    {"a layer without its settings", "conv: {out: 4, kernel: 3, padding: 1}", "conv",
     "m:4:5: conv: expected a mapping with out, kernel, stride, padding, not 'conv'"},
    {"settings for a layer that has none", "- relu", "- relu: {slope: 1}",
     "m:6:11: relu takes no settings"},
    {"two layers in one entry", "- batch_norm\n  - relu", "- {batch_norm: , relu: }",
     "m:5:5: layers: expected a layer such as 'relu' or 'conv: {out: 16, kernel: 3}', not a "
     "mapping"},
    {"an input that is no shape", "[1, 8, 8]", "[8, 8]",
     "m:2:8: input: expected [channels, height, width] or [features], not a list"},
    {"an input that the data does not have", "[1, 8, 8]", "[3, 8, 8]",
     "m:2:8: input: digits have 64 pixels, [1, 8, 8], but 3x8x8 is 192"},
    {"no layers", "layers:\n", "layers: []\nx:\n",
     "m:4:1: unknown key 'x': expected one of name, "
     "input, layers, train, data"},
    {"a linear layer before flatten", "  - flatten\n", "",
     "m:9:5: layer linear1: linear needs values in a row, but gets 4x3x3: put flatten before it"},
    {"a kernel larger than the image", "max_pool: {kernel: 2}", "max_pool: {kernel: 9}",
     "m:7:5: layer max_pool1: a kernel of 9 does not fit into 4x8x8 with padding 0: make the "
     "kernel "
     "smaller, or pool less before"},
    {"a model that does not end in classes", "out: 10", "out: 12",
     "m:10:5: layer linear1: the last layer must give 10 values, one a digit, but gives 12: end "
     "with "
     "'linear: {out: 10}'"},
    {"another kind of data", "kind: digits", "kind: digit",
     "m:12:14: data: unknown kind 'digit': did you mean 'digits'?"},
    {"text that is no YAML", "input: [1, 8, 8]", "input: [1, 8, 8",
     "m:3:7: end of sequence flow not found"},
    {"a text instead of a mapping", kGood, "hello",
     "m:1:1: model: expected a mapping with name, input, layers, train, data, not 'hello'"},
    {"an empty file", kGood, "",
     "m: model: expected a mapping with name, input, layers, train, data, not nothing"},
};

TEST(ModelFile, WhatIsWrongIsSaidWithItsPlace) {
  for (const WrongCase& wrong : kWrongCases) {
    const auto model = ParseModel(Replace(kGood, wrong.from, wrong.to), "m");
    ASSERT_FALSE(model) << wrong.name;
    EXPECT_EQ(model.error(), (Error{ErrorCode::kInvalid, wrong.want})) << wrong.name;
  }
}

TEST(ModelFile, AFileThatIsNotThereIsInvalidInput) {
  const auto model = ReadModelFile("/nowhere/model.yaml");
  ASSERT_FALSE(model);
  EXPECT_EQ(model.error(),
            (Error{ErrorCode::kInvalid, "read /nowhere/model.yaml: No such file or directory"}));
}

}  // namespace
}  // namespace pliant::learner
