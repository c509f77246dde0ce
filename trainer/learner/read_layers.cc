#include "trainer/learner/read_layers.h"

#include <algorithm>
#include <iterator>
#include <string>
#include <string_view>
#include <utility>

#include "base/format.h"

namespace pliant::learner {
namespace {

constexpr std::string_view kLayerKinds[] = {"conv",    "linear",   "batch_norm",
                                            "relu",    "max_pool", "avg_pool",
                                            "flatten", "dropout",  "residual"};
constexpr std::string_view kConvKeys[] = {"out", "kernel", "stride", "padding"};
constexpr std::string_view kLinearKeys[] = {"out"};
constexpr std::string_view kPoolKeys[] = {"kernel", "stride"};
constexpr std::string_view kDropoutKeys[] = {"rate"};
constexpr std::string_view kResidualKeys[] = {"layers", "shortcut"};

// A YAML alias (*name) can stand for many layers, and each of them for many more, so their total is
// limited. The nesting of residuals is limited because code recurses into them.
constexpr int kMaxLayers = 10'000;
constexpr int kMaxDepth = 8;

class Reader {
 public:
  std::vector<Layer> ReadList(const YAML::Node& node, std::string_view name) {
    if (!node.IsSequence() || node.size() == 0) {
      throw Wrong{node.Mark(), Format("{}: expected a list of layers, not {}", name,
                                      node.IsSequence() ? "an empty one" : Quoted(node))};
    }
    std::vector<Layer> layers;
    for (const YAML::Node& layer : node) layers.push_back(Read(layer));
    return layers;
  }

 private:
  // A layer is its kind ("relu"), or its kind with settings ("conv: {out: 16, kernel: 3}").
  Layer Read(const YAML::Node& node) {
    if (++layers_ > kMaxLayers) {
      throw Wrong{node.Mark(), Format("layers: expected at most {}", kMaxLayers)};
    }
    const bool has_settings = node.IsMap() && node.size() == 1 && node.begin()->first.IsScalar();
    if (!node.IsScalar() && !has_settings) {
      throw Wrong{node.Mark(), Format("layers: expected a layer such as 'relu' or 'conv: "
                                      "{{out: 16, kernel: 3}}', not {}",
                                      Quoted(node))};
    }
    const std::string kind = has_settings ? node.begin()->first.Scalar() : node.Scalar();
    const YAML::Node settings = has_settings ? node.begin()->second : node;
    if (kind == "conv") return ReadConv(settings);
    if (kind == "linear") return Linear{Mapping(settings, kind, kLinearKeys).Whole("out", kSizes)};
    if (kind == "max_pool") return ReadPool<MaxPool>(settings, kind);
    if (kind == "avg_pool") return ReadPool<AvgPool>(settings, kind);
    if (kind == "dropout") return ReadDropout(settings);
    if (kind == "residual") return ReadResidual(settings);
    if (std::ranges::find(kLayerKinds, kind) == std::end(kLayerKinds)) {
      throw Wrong{node.Mark(), "layers: " + Unknown("layer", kind, kLayerKinds)};
    }
    if (has_settings) throw Wrong{settings.Mark(), Format("{} takes no settings", kind)};
    if (kind == "batch_norm") return BatchNorm{};
    if (kind == "relu") return Relu{};
    return Flatten{};
  }

  static Conv ReadConv(const YAML::Node& node) {
    const Mapping fields(node, "conv", kConvKeys);
    Conv conv = {.out = fields.Whole("out", kSizes), .kernel = fields.Whole("kernel", kKernels)};
    conv.stride = fields.OptionalWhole("stride", kKernels).value_or(1);
    conv.padding = fields.OptionalWhole("padding", {0, conv.kernel - 1}).value_or(0);
    return conv;
  }

  template <typename Pool>
  static Pool ReadPool(const YAML::Node& node, std::string kind) {
    const Mapping fields(node, std::move(kind), kPoolKeys);
    const std::int64_t kernel = fields.Whole("kernel", kKernels);
    return {.kernel = kernel, .stride = fields.OptionalWhole("stride", kKernels).value_or(kernel)};
  }

  static Dropout ReadDropout(const YAML::Node& node) {
    const Mapping fields(node, "dropout", kDropoutKeys);
    return {.rate = fields.Real("rate", {.least = 0, .above = true, .below = 1})};
  }

  Residual ReadResidual(const YAML::Node& node) {
    const Mapping fields(node, "residual", kResidualKeys);
    if (depth_ == kMaxDepth) {
      throw Wrong{node.Mark(),
                  Format("residual: expected at most {} nested in each other", kMaxDepth)};
    }
    ++depth_;
    Residual residual;
    residual.layers = ReadList(fields.Required("layers"), "residual: layers");
    if (fields.Has("shortcut")) {
      residual.shortcut = ReadList(fields.Find("shortcut"), "residual: shortcut");
    }
    --depth_;
    return residual;
  }

  int layers_ = 0;
  int depth_ = 0;
};

}  // namespace

std::vector<Layer> ReadLayers(const YAML::Node& node) { return Reader().ReadList(node, "layers"); }

YAML::Node NodeAt(const YAML::Node& layers, const std::vector<std::size_t>& place) {
  YAML::Node node = layers[place[0]];
  for (std::size_t i = 1; i + 1 < place.size(); i += 2) {
    const YAML::Node residual = node["residual"];
    const YAML::Node list = residual[place[i] == 0 ? "layers" : "shortcut"];
    node.reset(list[place[i + 1]]);
  }
  return node;
}

}  // namespace pliant::learner
