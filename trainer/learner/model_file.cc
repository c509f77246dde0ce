#include "trainer/learner/model_file.h"

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <initializer_list>
#include <iterator>
#include <optional>
#include <utility>

#include "base/format.h"
#include "trainer/data/schedule.h"
#include "trainer/learner/read_layers.h"
#include "trainer/learner/samples.h"
#include "trainer/learner/yaml_fields.h"

namespace pliant::learner {
namespace {

constexpr std::string_view kModelKeys[] = {"name", "input", "layers", "train", "data"};
constexpr std::string_view kTrainKeys[] = {
    "epochs",    "learningRate",  "optimizer", "momentum",    "nesterov",       "betas",
    "epsilon",   "weightDecay",   "schedule",  "clipNorm",    "labelSmoothing", "onNonFiniteLoss",
    "batchSize", "logicalShards", "seed",      "batchScaling"};
constexpr std::string_view kOptimizers[] = {"sgd", "adamw"};
constexpr std::string_view kScheduleKeys[] = {"kind", "warmupEpochs", "atEpochs", "factor",
                                              "least"};
constexpr std::string_view kScheduleKinds[] = {"constant", "step", "cosine"};  // as Kind
constexpr std::string_view kScalings[] = {"none", "linear", "sqrt"};           // as BatchScaling
constexpr std::string_view kPolicies[] = {"stop", "skip", "warn"};             // as OnNonFiniteLoss
constexpr std::string_view kDataKeys[] = {"kind",      "train",   "test",
                                          "normalize", "augment", "classes"};
constexpr std::string_view kDataKinds[] = {"digits", "cifar10", "idx"};  // as DataKind
constexpr std::string_view kIdxKeys[] = {"images", "labels"};
constexpr std::string_view kNormalizeKeys[] = {"mean", "std"};
constexpr std::string_view kAugmentKeys[] = {"cropPadding", "horizontalFlip"};

constexpr RealRange kShares = {.least = 0, .below = 1};
constexpr RealRange kBetweenZeroAndOne = {.least = 0, .above = true, .below = 1};
constexpr RealRange kEpochs = {.least = 0, .below = 1e5};

Shape ReadInput(const YAML::Node& node) {
  if (!node.IsSequence() || (node.size() != 1 && node.size() != 3)) {
    throw Wrong{
        node.Mark(),
        Format("input: expected [channels, height, width] or [features], not {}", Quoted(node))};
  }
  Shape shape;
  for (const YAML::Node& side : node) shape.push_back(ReadWhole(side, "input", kSizes));
  return shape;
}

// ---- train ----

// Refuses settings of another choice (`of`), so that they are not silently ignored.
void RefuseKeys(const Mapping& fields, std::initializer_list<std::string_view> keys,
                std::string_view of, std::string_view given) {
  for (const std::string_view key : keys) {
    if (const YAML::Node node = fields.Find(key)) {
      throw Wrong{node.Mark(),
                  fields.In(Format("{} is a setting of {}, not of {}: remove it", key, of, given))};
    }
  }
}

Optimizer ReadOptimizer(const Mapping& fields) {
  std::size_t kind = 0;
  if (fields.Has("optimizer")) {
    kind = ReadWord(fields.Find("optimizer"), fields.In("optimizer"), "optimizer", kOptimizers);
  }
  if (kind == 0) {
    RefuseKeys(fields, {"betas", "epsilon"}, "adamw", "sgd");
    const Sgd sgd = {.momentum = fields.OptionalReal("momentum", kShares).value_or(0),
                     .nesterov = fields.OptionalBool("nesterov")};
    if (sgd.nesterov && sgd.momentum == 0) {
      throw Wrong{fields.Find("nesterov").Mark(), fields.In("nesterov needs a momentum")};
    }
    return sgd;
  }
  RefuseKeys(fields, {"momentum", "nesterov"}, "sgd", "adamw");
  AdamW adam;
  if (const YAML::Node node = fields.Find("betas")) {
    const std::vector<double> betas = ReadReals(node, fields.In("betas"), kShares);
    if (betas.size() != 2) {
      throw Wrong{node.Mark(),
                  fields.In(Format("betas: expected two numbers, such as [0.9, 0.999], not {}",
                                   betas.size()))};
    }
    adam.beta1 = betas[0];
    adam.beta2 = betas[1];
  }
  adam.epsilon = fields.OptionalReal("epsilon", kBetweenZeroAndOne).value_or(adam.epsilon);
  return adam;
}

LearningRateSchedule ReadSchedule(const YAML::Node& node, std::uint64_t epochs) {
  using Kind = LearningRateSchedule::Kind;
  const Mapping fields(node, "train: schedule", kScheduleKeys);
  LearningRateSchedule schedule;
  const std::size_t kind =
      ReadWord(fields.Required("kind"), fields.In("kind"), "schedule", kScheduleKinds);
  schedule.kind = static_cast<Kind>(kind);
  if (const YAML::Node warmup = fields.Find("warmupEpochs")) {
    schedule.warmup_epochs = ReadReal(warmup, fields.In("warmupEpochs"), kEpochs);
    if (schedule.warmup_epochs > static_cast<double>(epochs)) {
      throw Wrong{warmup.Mark(), fields.In(Format("warmupEpochs: expected at most the {} of "
                                                  "train.epochs, not {}",
                                                  epochs, Quoted(warmup)))};
    }
  }
  if (schedule.kind != Kind::kStep) {
    RefuseKeys(fields, {"atEpochs", "factor"}, "step", kScheduleKinds[kind]);
  } else {
    const YAML::Node at = fields.Required("atEpochs");
    schedule.at_epochs =
        ReadReals(at, fields.In("atEpochs"), {.least = 0, .above = true, .below = 1e5});
    for (std::size_t i = 1; i < schedule.at_epochs.size(); ++i) {
      if (schedule.at_epochs[i] <= schedule.at_epochs[i - 1]) {
        throw Wrong{at[i].Mark(),
                    fields.In(Format("atEpochs: expected growing numbers, but "
                                     "{} comes after {}",
                                     schedule.at_epochs[i], schedule.at_epochs[i - 1]))};
      }
    }
    schedule.factor = fields.OptionalReal("factor", kBetweenZeroAndOne).value_or(schedule.factor);
  }
  if (schedule.kind != Kind::kCosine) {
    RefuseKeys(fields, {"least"}, "cosine", kScheduleKinds[kind]);
  } else {
    schedule.least = fields.OptionalReal("least", kShares).value_or(0);
  }
  return schedule;
}

TrainSpec ReadTrain(const YAML::Node& node) {
  const Mapping fields(node, "train", kTrainKeys);
  TrainSpec train;
  train.epochs = static_cast<std::uint64_t>(fields.Whole("epochs", kCounts));
  train.learning_rate = fields.Real("learningRate", {.least = 0, .above = true, .below = 1000});
  train.weight_decay = fields.OptionalReal("weightDecay", kShares).value_or(0);
  train.optimizer = ReadOptimizer(fields);
  if (const YAML::Node schedule = fields.Find("schedule")) {
    train.schedule = ReadSchedule(schedule, train.epochs);
  }
  if (const YAML::Node scaling = fields.Find("batchScaling")) {
    train.batch_scaling =
        static_cast<BatchScaling>(ReadWord(scaling, fields.In("batchScaling"), "rule", kScalings));
  }
  train.clip_norm = fields.OptionalReal("clipNorm", {.least = 0, .above = true, .below = 1e5});
  train.label_smoothing = fields.OptionalReal("labelSmoothing", kShares).value_or(0);
  if (const YAML::Node policy = fields.Find("onNonFiniteLoss")) {
    train.on_non_finite_loss = static_cast<OnNonFiniteLoss>(
        ReadWord(policy, fields.In("onNonFiniteLoss"), "policy", kPolicies));
  }
  train.batch_size = fields.OptionalWhole("batchSize", kCounts);
  if (const YAML::Node shards = fields.Find("logicalShards")) {
    train.logical_shards = ReadWhole(shards, fields.In("logicalShards"), {1, kMaxLogicalShards});
    if (!std::has_single_bit(static_cast<unsigned>(*train.logical_shards))) {
      throw Wrong{shards.Mark(), fields.In(Format("logicalShards: expected a power of two, "
                                                  "not {}",
                                                  Quoted(shards)))};
    }
  }
  train.seed = fields.OptionalWhole("seed", kSeeds);
  return train;
}

// ---- data ----

DataFiles ReadFiles(const Mapping& data, std::string_view key, DataKind kind) {
  const YAML::Node node = data.Required(key);
  if (kind == DataKind::kIdx) {
    const Mapping files(node, data.In(key), kIdxKeys);
    return {.images = {files.Text("images")}, .labels = files.Text("labels")};
  }
  if (kind == DataKind::kDigits) return {.images = {data.Text(key)}, .labels = {}};
  const std::vector<std::string> names = ReadTexts(node, data.In(key));
  return {.images = {names.begin(), names.end()}, .labels = {}};
}

Normalize ReadNormalize(const YAML::Node& node, std::size_t channels) {
  const Mapping fields(node, "data: normalize", kNormalizeKeys);
  const auto read = [&](std::string_view key, RealRange range) {
    const YAML::Node numbers = fields.Required(key);
    std::vector<double> values = ReadReals(numbers, fields.In(key), range);
    if (values.size() != 1 && values.size() != channels) {
      throw Wrong{numbers.Mark(),
                  fields.In(Format("{}: expected one number, or one for each of {} channels, "
                                   "not {}",
                                   key, channels, values.size()))};
    }
    return values;
  };
  return {.mean = read("mean", {.least = -1000, .below = 1000}),
          .deviation = read("std", {.least = 0, .above = true, .below = 1000})};
}

Augment ReadAugment(const YAML::Node& node, std::int64_t side) {
  const Mapping fields(node, "data: augment", kAugmentKeys);
  return {.crop_padding = fields.OptionalWhole("cropPadding", {0, side - 1}).value_or(0),
          .horizontal_flip = fields.OptionalBool("horizontalFlip")};
}

DatasetSpec ReadData(const YAML::Node& node, const Shape& input) {
  const Mapping fields(node, "data", kDataKeys);
  DatasetSpec data;
  const std::size_t kind = ReadWord(fields.Required("kind"), fields.In("kind"), "kind", kDataKinds);
  data.kind = static_cast<DataKind>(kind);
  data.train = ReadFiles(fields, "train", data.kind);
  data.test = ReadFiles(fields, "test", data.kind);
  if (data.kind == DataKind::kIdx) {
    data.classes = fields.OptionalWhole("classes", {2, 256}).value_or(data.classes);
  } else {
    RefuseKeys(fields, {"classes"}, "idx", kDataKinds[kind]);
  }
  // IDX: the size is read from the files later, and must then equal the model's.
  const Shape images =
      ShapeOf(data.kind).value_or(input.size() == 3 ? input : Shape{1, 65536, 65536});
  if (const YAML::Node normalize = fields.Find("normalize")) {
    data.normalize = ReadNormalize(normalize, static_cast<std::size_t>(images[0]));
  }
  if (const YAML::Node augment = fields.Find("augment")) {
    data.augment = ReadAugment(augment, std::min(images[1], images[2]));
  }
  return data;
}

// ---- The whole ----

// The layers must accept the data's images and end with one value for each class.
void CheckShapes(const ModelSpec& model, const YAML::Node& input, const YAML::Node& layers) {
  if (const auto images = ShapeOf(model.data.kind)) {
    if (const Status fits = CheckInput(model.input, *images); !fits) {
      throw Wrong{input.Mark(), fits.error().message};
    }
  }
  const auto shapes = InferShapes(model.input, model.layers);
  if (!shapes) throw Wrong{NodeAt(layers, shapes.error().place).Mark(), shapes.error().message};
  if (shapes->back() != Shape{model.data.classes}) {
    throw Wrong{layers[model.layers.size() - 1].Mark(),
                Format("layer {}: the last layer must give {} values, one a class, but gives "
                       "{}: end with 'linear: {{out: {}}}'",
                       LayerNames(model.layers).back(), model.data.classes,
                       ToString(shapes->back()), model.data.classes)};
  }
}

ModelSpec ReadModel(const YAML::Node& root) {
  const Mapping fields(root, "", kModelKeys);
  ModelSpec model;
  model.name = fields.Text("name");
  model.input = ReadInput(fields.Required("input"));
  model.layers = ReadLayers(fields.Required("layers"));
  model.train = ReadTrain(fields.Required("train"));
  model.data = ReadData(fields.Required("data"), model.input);
  CheckShapes(model, fields.Required("input"), fields.Required("layers"));
  return model;
}

std::unexpected<Error> InvalidAt(std::string_view origin, const YAML::Mark& mark,
                                 std::string_view message) {
  if (mark.is_null()) return Invalid(Format("{}: {}", origin, message));
  return Invalid(Format("{}:{}:{}: {}", origin, mark.line + 1, mark.column + 1, message));
}

}  // namespace

Result<ModelSpec> ParseModel(const std::string& text, std::string_view origin) {
  try {
    return ReadModel(YAML::Load(text));
  } catch (const Wrong& wrong) {
    return InvalidAt(origin, wrong.mark, wrong.message);
  } catch (const YAML::Exception& error) {
    return InvalidAt(origin, error.mark, error.msg);
  }
}

Result<ModelSpec> ReadModelFile(const std::filesystem::path& path) {
  std::ifstream file(path);
  if (!file) return Invalid(Format("read {}: {}", path.string(), std::strerror(errno)));
  return ParseModel({std::istreambuf_iterator<char>(file), {}}, path.string());
}

}  // namespace pliant::learner
