#include "trainer/learner/model_file.h"

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstring>
#include <format>
#include <fstream>
#include <iterator>
#include <limits>
#include <optional>
#include <set>
#include <span>

#include <yaml-cpp/yaml.h>

#include "trainer/learner/closest_word.h"

namespace pliant::learner {
namespace {

// Thrown where the text is wrong, caught in ParseModel.
struct Wrong {
  YAML::Mark mark;
  std::string message;
};

std::string_view KindOfNode(const YAML::Node& node) {
  if (node.IsMap()) return "a mapping";
  if (node.IsSequence()) return "a list";
  return "a value";
}

std::string Quoted(const YAML::Node& node) {
  if (node.IsScalar()) return std::format("'{}'", node.Scalar());
  return node.IsNull() ? "nothing" : std::string(KindOfNode(node));
}

std::string Joined(std::span<const std::string_view> words) {
  std::string text;
  for (const std::string_view word : words) {
    text += std::format("{}{}", text.empty() ? "" : ", ", word);
  }
  return text;
}

std::string Unknown(std::string_view what, std::string_view typed,
                    std::span<const std::string_view> known) {
  if (const auto closest = ClosestWord(typed, known)) {
    return std::format("unknown {} '{}': did you mean '{}'?", what, typed, *closest);
  }
  return std::format("unknown {} '{}': expected one of {}", what, typed, Joined(known));
}

struct WholeRange {
  std::int64_t least = 0;
  std::int64_t most = 0;
};
constexpr WholeRange kSizes = {1, 65536};  // channels, features, sides of an image
constexpr WholeRange kKernels = {1, 255};
constexpr WholeRange kCounts = {1, 1'000'000'000};
constexpr WholeRange kSeeds = {0, std::numeric_limits<std::int64_t>::max()};

std::int64_t ReadWhole(const YAML::Node& node, std::string_view name, WholeRange range) {
  std::int64_t value = 0;
  if (!node.IsScalar() || !YAML::convert<std::int64_t>::decode(node, value) ||
      value < range.least || value > range.most) {
    throw Wrong{node.Mark(), std::format("{}: expected a whole number of {} to {}, not {}", name,
                                         range.least, range.most, Quoted(node))};
  }
  return value;
}

// In [least, most); `above` excludes `least` itself.
double ReadReal(const YAML::Node& node, std::string_view name, bool above, double most) {
  double value = 0;
  if (!node.IsScalar() || !YAML::convert<double>::decode(node, value) || !std::isfinite(value) ||
      value < 0 || (above && value == 0) || value >= most) {
    throw Wrong{node.Mark(), std::format("{}: expected a number {} 0 and below {}, not {}", name,
                                         above ? "above" : "of at least", most, Quoted(node))};
  }
  return value;
}

std::string ReadText(const YAML::Node& node, std::string_view name) {
  if (!node.IsScalar() || node.Scalar().empty()) {
    throw Wrong{node.Mark(), std::format("{}: expected a text, not {}", name, Quoted(node))};
  }
  return node.Scalar();
}

// One mapping whose keys are all known. `path` names it in messages: "train".
class Mapping {
 public:
  Mapping(const YAML::Node& node, std::string path, std::span<const std::string_view> known)
      : node_(node), path_(std::move(path)) {
    if (!node.IsMap()) {
      throw Wrong{node.Mark(),
                  std::format("{}: expected a mapping with {}, not {}",
                              path_.empty() ? "model" : path_, Joined(known), Quoted(node))};
    }
    std::set<std::string> seen;
    for (const auto& entry : node) {
      const std::string key = entry.first.IsScalar() ? entry.first.Scalar() : "";
      if (std::ranges::find(known, key) == known.end()) {
        throw Wrong{entry.first.Mark(), In(Unknown("key", key, known))};
      }
      if (!seen.insert(key).second) throw Wrong{entry.first.Mark(), In(key + " is given twice")};
    }
  }

  YAML::Node Required(std::string_view key) const {
    const YAML::Node node = node_[std::string(key)];
    if (!node) throw Wrong{node_.Mark(), In(std::format("{} is missing", key))};
    return node;
  }
  std::int64_t Whole(std::string_view key, WholeRange range) const {
    return ReadWhole(Required(key), In(key), range);
  }
  std::optional<std::int64_t> OptionalWhole(std::string_view key, WholeRange range) const {
    const YAML::Node node = node_[std::string(key)];
    if (!node) return std::nullopt;
    return ReadWhole(node, In(key), range);
  }
  double PositiveReal(std::string_view key, double most) const {
    return ReadReal(Required(key), In(key), /*above=*/true, most);
  }
  std::optional<double> OptionalReal(std::string_view key, double most) const {
    const YAML::Node node = node_[std::string(key)];
    if (!node) return std::nullopt;
    return ReadReal(node, In(key), /*above=*/false, most);
  }
  std::string Text(std::string_view key) const { return ReadText(Required(key), In(key)); }

 private:
  std::string In(std::string_view message) const {
    return path_.empty() ? std::string(message) : std::format("{}: {}", path_, message);
  }

  YAML::Node node_;
  std::string path_;
};

constexpr std::string_view kModelKeys[] = {"name", "input", "layers", "train", "data"};
constexpr std::string_view kTrainKeys[] = {"epochs",      "learningRate", "momentum",
                                           "weightDecay", "batchSize",    "seed"};
constexpr std::string_view kDataKeys[] = {"kind", "train", "test"};
constexpr std::string_view kDataKinds[] = {"digits"};
constexpr std::string_view kLayerKinds[] = {"conv",     "linear",   "batch_norm", "relu",
                                            "max_pool", "avg_pool", "flatten"};
constexpr std::string_view kConvKeys[] = {"out", "kernel", "stride", "padding"};
constexpr std::string_view kLinearKeys[] = {"out"};
constexpr std::string_view kPoolKeys[] = {"kernel", "stride"};

Shape ReadInput(const YAML::Node& node) {
  if (!node.IsSequence() || (node.size() != 1 && node.size() != 3)) {
    throw Wrong{node.Mark(),
                std::format("input: expected [channels, height, width] or [features], not {}",
                            Quoted(node))};
  }
  Shape shape;
  for (const YAML::Node& side : node) shape.push_back(ReadWhole(side, "input", kSizes));
  return shape;
}

Conv ReadConv(const YAML::Node& node) {
  const Mapping fields(node, "conv", kConvKeys);
  Conv conv = {.out = fields.Whole("out", kSizes), .kernel = fields.Whole("kernel", kKernels)};
  conv.stride = fields.OptionalWhole("stride", kKernels).value_or(1);
  conv.padding = fields.OptionalWhole("padding", {0, conv.kernel - 1}).value_or(0);
  return conv;
}

template <typename Pool>
Pool ReadPool(const YAML::Node& node, std::string kind) {
  const Mapping fields(node, std::move(kind), kPoolKeys);
  const std::int64_t kernel = fields.Whole("kernel", kKernels);
  return {.kernel = kernel, .stride = fields.OptionalWhole("stride", kKernels).value_or(kernel)};
}

// A layer is its kind ("relu"), or its kind with settings ("conv: {out: 16, kernel: 3}").
Layer ReadLayer(const YAML::Node& node) {
  const bool has_settings = node.IsMap() && node.size() == 1 && node.begin()->first.IsScalar();
  if (!node.IsScalar() && !has_settings) {
    throw Wrong{node.Mark(), std::format("layers: expected a layer such as 'relu' or 'conv: {{out: "
                                         "16, kernel: 3}}', not {}",
                                         Quoted(node))};
  }
  const std::string kind = has_settings ? node.begin()->first.Scalar() : node.Scalar();
  const YAML::Node settings = has_settings ? node.begin()->second : node;
  if (kind == "conv") return ReadConv(settings);
  if (kind == "linear") return Linear{Mapping(settings, kind, kLinearKeys).Whole("out", kSizes)};
  if (kind == "max_pool") return ReadPool<MaxPool>(settings, kind);
  if (kind == "avg_pool") return ReadPool<AvgPool>(settings, kind);
  if (std::ranges::find(kLayerKinds, kind) == std::end(kLayerKinds)) {
    throw Wrong{node.Mark(), "layers: " + Unknown("layer", kind, kLayerKinds)};
  }
  if (has_settings) throw Wrong{settings.Mark(), std::format("{} takes no settings", kind)};
  if (kind == "batch_norm") return BatchNorm{};
  if (kind == "relu") return Relu{};
  return Flatten{};
}

TrainSpec ReadTrain(const YAML::Node& node) {
  const Mapping fields(node, "train", kTrainKeys);
  TrainSpec train;
  train.epochs = static_cast<std::uint64_t>(fields.Whole("epochs", kCounts));
  train.learning_rate = fields.PositiveReal("learningRate", 1000);
  train.momentum = fields.OptionalReal("momentum", 1).value_or(0);
  train.weight_decay = fields.OptionalReal("weightDecay", 1).value_or(0);
  train.batch_size = fields.OptionalWhole("batchSize", kCounts);
  train.seed = fields.OptionalWhole("seed", kSeeds);
  return train;
}

DigitsSpec ReadData(const YAML::Node& node) {
  const Mapping fields(node, "data", kDataKeys);
  if (const std::string kind = fields.Text("kind"); kind != "digits") {
    throw Wrong{node["kind"].Mark(), "data: " + Unknown("kind", kind, kDataKinds)};
  }
  return {.train = fields.Text("train"), .test = fields.Text("test")};
}

// The layers must take the data's images and end in one value a class.
void CheckShapes(const ModelSpec& model, const YAML::Node& input, const YAML::Node& layers) {
  if (Elements(model.input) != kDigitPixels) {
    throw Wrong{input.Mark(),
                std::format("input: digits have {} pixels, [1, 8, 8], but {} is {}", kDigitPixels,
                            ToString(model.input), Elements(model.input))};
  }
  const auto shapes = InferShapes(model.input, model.layers);
  if (!shapes) throw Wrong{layers[shapes.error().layer].Mark(), shapes.error().message};
  if (shapes->back() != Shape{kDigitClasses}) {
    throw Wrong{layers[model.layers.size() - 1].Mark(),
                std::format("layer {}: the last layer must give {} values, one a digit, but gives "
                            "{}: end with 'linear: {{out: {}}}'",
                            LayerNames(model.layers).back(), kDigitClasses,
                            ToString(shapes->back()), kDigitClasses)};
  }
}

ModelSpec ReadModel(const YAML::Node& root) {
  const Mapping fields(root, "", kModelKeys);
  ModelSpec model;
  model.name = fields.Text("name");
  model.input = ReadInput(fields.Required("input"));
  const YAML::Node layers = fields.Required("layers");
  if (!layers.IsSequence() || layers.size() == 0) {
    throw Wrong{layers.Mark(),
                std::format("layers: expected a list of layers, not {}", Quoted(layers))};
  }
  for (const YAML::Node& layer : layers) model.layers.push_back(ReadLayer(layer));
  model.train = ReadTrain(fields.Required("train"));
  model.data = ReadData(fields.Required("data"));
  CheckShapes(model, fields.Required("input"), layers);
  return model;
}

std::unexpected<Error> InvalidAt(std::string_view origin, const YAML::Mark& mark,
                                 std::string_view message) {
  if (mark.is_null()) return Invalid(std::format("{}: {}", origin, message));
  return Invalid(std::format("{}:{}:{}: {}", origin, mark.line + 1, mark.column + 1, message));
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
  if (!file) return Invalid(std::format("read {}: {}", path.string(), std::strerror(errno)));
  return ParseModel({std::istreambuf_iterator<char>(file), {}}, path.string());
}

}  // namespace pliant::learner
