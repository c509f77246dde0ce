#include "trainer/learner/model_file.h"

#include <cstdint>
#include <filesystem>
#include <random>
#include <string>
#include <string_view>

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

// Every option that kGood does not have.
constexpr char kRich[] = R"(name: rich
input: [3, 32, 32]
layers:
  - residual:
      layers: [relu, conv: {out: 8, kernel: 3, padding: 1}]
      shortcut: [conv: {out: 8, kernel: 1}, batch_norm]
  - residual: {layers: [relu]}
  - flatten
  - dropout: {rate: 0.5}
  - linear: {out: 10}
train:
  epochs: 9
  learningRate: 0.001
  optimizer: adamw
  betas: [0.8, 0.95]
  epsilon: 1e-6
  schedule: {kind: cosine, warmupEpochs: 0.5, least: 0.1}
  clipNorm: 1.5
  labelSmoothing: 0.1
  onNonFiniteLoss: skip
  logicalShards: 16
data:
  kind: cifar10
  train: [a.bin, b.bin]
  test: c.bin
  normalize: {mean: [0.4, 0.5, 0.6], std: 0.25}
  augment: {cropPadding: 4, horizontalFlip: true}
)";

std::string Replace(std::string text, const std::string& from, const std::string& to) {
  const std::size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return at == std::string::npos ? text : text.replace(at, from.size(), to);
}

TEST(ModelFile, SaysHowTheLearningRateFollowsABatchThatGrows) {
  EXPECT_EQ(ParseModel(kGood, "m")->train.batch_scaling, BatchScaling::kNone);
  for (const auto& [word, scaling] :
       {std::pair("none", BatchScaling::kNone), std::pair("linear", BatchScaling::kLinear),
        std::pair("sqrt", BatchScaling::kSqrt)}) {
    const auto model =
        ParseModel(Replace(kGood, "seed: 7", std::string("batchScaling: ") + word), "m");
    ASSERT_TRUE(model) << model.error();
    EXPECT_EQ(model->train.batch_scaling, scaling);
  }
  EXPECT_FALSE(ParseModel(Replace(kGood, "seed: 7", "batchScaling: cubic"), "m"));
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
                                         .weight_decay = 0.001,
                                         .optimizer = Sgd{.momentum = 0.9},
                                         .schedule = {},
                                         .batch_size = 64,
                                         .seed = 7},
                               .data = {.train = {.images = {"a.csv"}, .labels = {}},
                                        .test = {.images = {"b.csv"}, .labels = {}}}}));
}

TEST(ModelFile, HasMoreForThoseWhoWantIt) {
  const auto model = ParseModel(kRich, "model.yaml");
  ASSERT_TRUE(model) << model.error();
  EXPECT_EQ(
      *model,
      (ModelSpec{.name = "rich",
                 .input = {3, 32, 32},
                 .layers = {Residual{.layers = {Relu{}, Conv{.out = 8, .kernel = 3, .padding = 1}},
                                     .shortcut = {Conv{.out = 8, .kernel = 1}, BatchNorm{}}},
                            Residual{.layers = {Relu{}}, .shortcut = {}}, Flatten{},
                            Dropout{.rate = 0.5}, Linear{10}},
                 .train = {.epochs = 9,
                           .learning_rate = 0.001,
                           .optimizer = AdamW{.beta1 = 0.8, .beta2 = 0.95, .epsilon = 1e-6},
                           .schedule = {.kind = LearningRateSchedule::Kind::kCosine,
                                        .warmup_epochs = 0.5,
                                        .at_epochs = {},
                                        .least = 0.1},
                           .clip_norm = 1.5,
                           .label_smoothing = 0.1,
                           .on_non_finite_loss = OnNonFiniteLoss::kSkip,
                           .logical_shards = 16},
                 .data = {.kind = DataKind::kCifar10,
                          .train = {.images = {"a.bin", "b.bin"}, .labels = {}},
                          .test = {.images = {"c.bin"}, .labels = {}},
                          .normalize = {.mean = {0.4, 0.5, 0.6}, .deviation = {0.25}},
                          .augment = {.crop_padding = 4, .horizontal_flip = true}}}));
}

TEST(ModelFile, StepsOfTheLearningRateAreListed) {
  const auto model = ParseModel(Replace(kRich, "{kind: cosine, warmupEpochs: 0.5, least: 0.1}",
                                        "{kind: step, atEpochs: [3, 6.5]}"),
                                "m");
  ASSERT_TRUE(model) << model.error();
  EXPECT_EQ(model->train.schedule, (LearningRateSchedule{.kind = LearningRateSchedule::Kind::kStep,
                                                         .at_epochs = {3, 6.5}}));
}

TEST(ModelFile, IdxNamesImagesAndLabels) {
  const auto model = ParseModel(
      Replace(
          kGood, "{kind: digits, train: a.csv, test: b.csv}",
          "{kind: idx, classes: 10, train: {images: a, labels: b}, test: {images: c, labels: d}}"),
      "m");
  ASSERT_TRUE(model) << model.error();
  EXPECT_EQ(model->data, (DatasetSpec{.kind = DataKind::kIdx,
                                      .train = {.images = {"a"}, .labels = "b"},
                                      .test = {.images = {"c"}, .labels = "d"}}));
}

TEST(ModelFile, OptionalFieldsHaveDefaults) {
  const auto model = ParseModel(
      Replace(kGood, ", momentum: 0.9, weightDecay: 0.001, batchSize: 64, seed: 7", ""), "m");
  ASSERT_TRUE(model) << model.error();
  EXPECT_EQ(model->train,
            (TrainSpec{.epochs = 3, .learning_rate = 0.1, .optimizer = Sgd{}, .schedule = {}}));
}

struct WrongCase {
  std::string name;  // a name that begins with "rich: " applies to kRich
  std::string from;  // text replaced in the good file
  std::string to;
  std::string want;  // the whole message
};

const WrongCase kWrongCases[] = {
    {"a misspelt key of the top",
     "layers:", "layer:", "m:3:1: unknown key 'layer': did you mean 'layers'?"},
    {"a misspelt setting", "learningRate", "learningrate",
     "m:11:20: train: unknown key 'learningrate': did you mean 'learningRate'?"},
    {"a setting like no other", "momentum", "colour",
     "m:11:39: train: unknown key 'colour': expected one of epochs, learningRate, optimizer, "
     "momentum, nesterov, betas, epsilon, weightDecay, schedule, clipNorm, labelSmoothing, "
     "onNonFiniteLoss, batchSize, logicalShards, seed, batchScaling"},
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
     "m:2:8: input: the images are 1x8x8, but the model takes 3x8x8: expected [1, 8, 8] or [64]"},
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
     "m:10:5: layer linear1: the last layer must give 10 values, one a class, but gives 12: end "
     "with "
     "'linear: {out: 10}'"},
    {"another kind of data", "kind: digits", "kind: digit",
     "m:12:14: data: kind: unknown kind 'digit': did you mean 'digits'?"},
    {"text that is no YAML", "input: [1, 8, 8]", "input: [1, 8, 8",
     "m:3:7: end of sequence flow not found"},
    {"an empty list of layers",
     "layers:\n  - conv: {out: 4, kernel: 3, padding: 1}\n  - batch_norm\n"
     "  - relu\n  - max_pool: {kernel: 2}\n  - avg_pool: {kernel: 2, stride: 1}\n  - flatten\n"
     "  - linear: {out: 10}\n",
     "layers: []\n", "m:3:9: layers: expected a list of layers, not an empty one"},
    {"a side of nothing", "[1, 8, 8]", "[1, 0, 8]",
     "m:2:12: input: expected a whole number of 1 to 65536, not '0'"},
    {"a number that no machine holds", "out: 4", "out: 99999999999999999999",
     "m:4:17: conv: out: expected a whole number of 1 to 65536, not '99999999999999999999'"},
    {"a misspelt optimizer", "epochs: 3", "epochs: 3, optimizer: adam",
     "m:11:31: train: optimizer: unknown optimizer 'adam': did you mean 'adamw'?"},
    {"a setting of the other optimizer", "epochs: 3", "epochs: 3, betas: [0.9, 0.99]",
     "m:11:27: train: betas is a setting of adamw, not of sgd: remove it"},
    {"Nesterov without momentum", "momentum: 0.9", "nesterov: true",
     "m:11:49: train: nesterov needs a momentum"},
    {"a word for yes", "momentum: 0.9", "momentum: 0.9, nesterov: maybe",
     "m:11:64: train: nesterov: expected true or false, not 'maybe'"},
    {"files of images where one is wanted", "train: a.csv", "train: [a.csv]",
     "m:12:29: data: train: expected a text, not a list"},
    {"a data set's setting", "test: b.csv", "test: b.csv, classes: 10",
     "m:12:58: data: classes is a setting of idx, not of digits: remove it"},
    {"data without a test", ", test: b.csv", "", "m:12:7: data: test is missing"},
    {"data of channels that it has not", "test: b.csv",
     "test: b.csv, normalize: {mean: [0.1, 0.2], std: 1}",
     "m:12:67: data: normalize: mean: expected one number, or one for each of 1 channels, not 2"},
    {"rich: momentum for AdamW", "epsilon: 1e-6", "momentum: 0.9",
     "m:16:13: train: momentum is a setting of sgd, not of adamw: remove it"},
    {"rich: one beta", "[0.8, 0.95]", "0.8",
     "m:15:10: train: betas: expected two numbers, such as [0.9, 0.999], not 1"},
    {"rich: a beta of one", "[0.8, 0.95]", "[0.8, 1]",
     "m:15:16: train: betas: expected a number of at least 0 and below 1, not '1'"},
    {"rich: a schedule that is only a word", "{kind: cosine, warmupEpochs: 0.5, least: 0.1}",
     "cosine",
     "m:17:13: train: schedule: expected a mapping with kind, warmupEpochs, atEpochs, factor, "
     "least, not 'cosine'"},
    {"rich: a misspelt schedule", "kind: cosine", "kind: cosin",
     "m:17:20: train: schedule: kind: unknown schedule 'cosin': did you mean 'cosine'?"},
    {"rich: a warm-up beyond the training", "warmupEpochs: 0.5", "warmupEpochs: 10",
     "m:17:42: train: schedule: warmupEpochs: expected at most the 9 of train.epochs, not '10'"},
    {"rich: a setting of another schedule", "least: 0.1", "factor: 0.1",
     "m:17:55: train: schedule: factor is a setting of step, not of cosine: remove it"},
    {"rich: steps at no epochs", "{kind: cosine, warmupEpochs: 0.5, least: 0.1}", "{kind: step}",
     "m:17:13: train: schedule: atEpochs is missing"},
    {"rich: steps that go back", "{kind: cosine, warmupEpochs: 0.5, least: 0.1}",
     "{kind: step, atEpochs: [5, 3]}",
     "m:17:40: train: schedule: atEpochs: expected growing numbers, but 3 comes after 5"},
    {"rich: an empty list of numbers", "{kind: cosine, warmupEpochs: 0.5, least: 0.1}",
     "{kind: step, atEpochs: []}",
     "m:17:36: train: schedule: atEpochs: expected at least one, not an empty list"},
    {"rich: a gradient of no length", "clipNorm: 1.5", "clipNorm: 0",
     "m:18:13: train: clipNorm: expected a number above 0 and below 100000, not '0'"},
    {"rich: all smoothed away", "labelSmoothing: 0.1", "labelSmoothing: 1",
     "m:19:19: train: labelSmoothing: expected a number of at least 0 and below 1, not '1'"},
    {"rich: a misspelt policy", "onNonFiniteLoss: skip", "onNonFiniteLoss: skipp",
     "m:20:20: train: onNonFiniteLoss: unknown policy 'skipp': did you mean 'skip'?"},
    {"rich: shards that make no tree", "logicalShards: 16", "logicalShards: 24",
     "m:21:18: train: logicalShards: expected a power of two, not '24'"},
    {"rich: everything dropped", "rate: 0.5", "rate: 1",
     "m:9:21: dropout: rate: expected a number above 0 and below 1, not '1'"},
    {"rich: a residual without layers", "{layers: [relu]}", "{shortcut: [relu]}",
     "m:7:15: residual: layers is missing"},
    {"rich: a misspelt layer within a residual", "shortcut: [conv", "shortcut: [cnv",
     "m:6:18: layers: unknown layer 'cnv': did you mean 'conv'?"},
    {"rich: a shortcut of another size", "shortcut: [conv: {out: 8", "shortcut: [conv: {out: 9",
     "m:4:5: layer residual1: its layers give 8x32x32, but its shortcut gives 9x32x32, and the two "
     "are added: make both equal"},
    {"rich: a layer that does not fit, within a residual",
     "[relu, conv: {out: 8, kernel: 3, padding: 1}]", "[relu, linear: {out: 8}]",
     "m:5:22: layer residual1.linear1: linear needs values in a row, but gets 3x32x32: put flatten "
     "before it"},
    {"rich: images of another size", "[3, 32, 32]", "[3, 28, 28]",
     "m:2:8: input: the images are 3x32x32, but the model takes 3x28x28: expected [3, 32, 32] or "
     "[3072]"},
    {"rich: labels with images", "test: c.bin", "test: {images: c, labels: d}",
     "m:25:9: data: test: expected a text, not a mapping"},
    {"rich: no deviation", "std: 0.25", "std: 0",
     "m:26:43: data: normalize: std: expected a number above 0 and below 1000, not '0'"},
    {"rich: a crop beyond the image", "cropPadding: 4", "cropPadding: 32",
     "m:27:26: data: augment: cropPadding: expected a whole number of 0 to 31, not '32'"},
    {"rich: an augmentation that there is not", "horizontalFlip", "verticalFlip",
     "m:27:29: data: augment: unknown key 'verticalFlip': expected one of cropPadding, "
     "horizontalFlip"},
    {"a text instead of a mapping", kGood, "hello",
     "m:1:1: model: expected a mapping with name, input, layers, train, data, not 'hello'"},
    {"an empty file", kGood, "",
     "m: model: expected a mapping with name, input, layers, train, data, not nothing"},
};

TEST(ModelFile, ReportsErrorsWithTheirPlace) {
  for (const WrongCase& wrong : kWrongCases) {
    const char* const base = wrong.name.starts_with("rich: ") ? kRich : kGood;
    const auto model = ParseModel(Replace(base, wrong.from, wrong.to), "m");
    ASSERT_FALSE(model) << wrong.name;
    EXPECT_EQ(model.error(), (Error{ErrorCode::kInvalid, wrong.want})) << wrong.name;
  }
}

// With aliases a short text can expand to an unlimited model.
TEST(ModelFile, BombsAreDefused) {
  const auto with_layers = [](const std::string& layers) {
    const std::string rest = std::string(kGood).substr(std::string(kGood).find("train:"));
    return ParseModel("name: bomb\ninput: [1, 8, 8]\nlayers:\n" + layers + rest, "m");
  };
  std::string wide =
      "  - residual: {layers: &a0 [relu, relu, relu, relu, relu, relu, relu, relu]}\n";
  for (int i = 1; i < 8; ++i) {
    wide += "  - residual: {layers: &a" + std::to_string(i) + " [";
    for (int j = 0; j < 8; ++j) {
      wide += "residual: {layers: *a" + std::to_string(i - 1) + "}, ";
    }
    wide += "relu]}\n";
  }
  const auto too_many = with_layers(wide);
  ASSERT_FALSE(too_many);
  EXPECT_THAT(too_many.error().message, testing::HasSubstr("layers: expected at most 10000"));

  std::string deep = "relu";
  for (int i = 0; i < 9; ++i) deep = "residual: {layers: [" + deep + "]}";
  const auto too_deep = with_layers("  - " + deep + "\n");
  ASSERT_FALSE(too_deep);
  EXPECT_THAT(too_deep.error().message,
              testing::HasSubstr("residual: expected at most 8 nested in each other"));

  const auto brackets = with_layers("  - " + std::string(100'000, '[') + "\n");
  EXPECT_FALSE(brackets);
}

// Any text leads to a model, or to an error with a position.
TEST(ModelFile, TornTextsAreAnswered) {
  using namespace std::string_view_literals;
  constexpr std::string_view kTyped = "{}[]:,-&*!|>'\"#%@`~\n\t 0e.xn\x00\xff"sv;
  std::mt19937_64 random(4);
  int refused = 0;
  for (int i = 0; i < 300; ++i) {
    std::string text = i % 2 == 0 ? kGood : kRich;
    for (std::uint64_t edits = 1 + random() % 4; edits > 0; --edits) {
      const std::size_t at = random() % text.size();
      switch (random() % 4) {
        case 0:
          text[at] = kTyped[random() % kTyped.size()];
          break;
        case 1:
          text.insert(at, 1, kTyped[random() % kTyped.size()]);
          break;
        case 2:
          text.erase(at, 1 + random() % 20);
          break;
        default:
          text.insert(at, text.substr(random() % text.size(), random() % 40));
      }
    }
    const auto model = ParseModel(text, "m");
    if (model) continue;
    ++refused;
    EXPECT_EQ(model.error().code, ErrorCode::kInvalid) << text;
    EXPECT_TRUE(model.error().message.starts_with("m:")) << model.error().message;
  }
  EXPECT_GT(refused, 150);
}

TEST(ModelFile, ReadsTheModelsOfTheManifests) {
  const std::filesystem::path manifests = std::filesystem::path(PLIANT_SOURCE_DIR) / "manifests";
  for (const char* const file : {"demo/model.yaml", "examples/cifar10/model.yaml"}) {
    const auto model = ReadModelFile(manifests / file);
    EXPECT_TRUE(model) << model.error();
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
