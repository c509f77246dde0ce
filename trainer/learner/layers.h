#pragma once

#include <cstddef>
#include <cstdint>
#include <expected>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace pliant::learner {

// One sample without its batch dimension: {channels, height, width}, or {features} after flatten.
using Shape = std::vector<std::int64_t>;
std::string ToString(const Shape& shape);  // "16x8x8"
std::int64_t Elements(const Shape& shape);

struct Conv {
  std::int64_t out = 0;
  std::int64_t kernel = 0;
  std::int64_t stride = 1;
  std::int64_t padding = 0;
  bool operator==(const Conv&) const = default;
};
struct Linear {
  std::int64_t out = 0;
  bool operator==(const Linear&) const = default;
};
struct BatchNorm {
  bool operator==(const BatchNorm&) const = default;
};
struct Relu {
  bool operator==(const Relu&) const = default;
};
struct MaxPool {
  std::int64_t kernel = 0;
  std::int64_t stride = 0;
  bool operator==(const MaxPool&) const = default;
};
struct AvgPool {
  std::int64_t kernel = 0;
  std::int64_t stride = 0;
  bool operator==(const AvgPool&) const = default;
};
struct Flatten {
  bool operator==(const Flatten&) const = default;
};
struct Dropout {
  double rate = 0;  // the share of values that training sets to zero
  bool operator==(const Dropout&) const = default;
};
struct Layer;
// layers(x) + shortcut(x); without a shortcut, layers(x) + x.
struct Residual {
  std::vector<Layer> layers;
  std::vector<Layer> shortcut;
  bool operator==(const Residual& other) const;
};
using AnyLayer =
    std::variant<Conv, Linear, BatchNorm, Relu, MaxPool, AvgPool, Flatten, Dropout, Residual>;
// A class, which can be declared before it is complete, so that a Residual can contain layers.
struct Layer : AnyLayer {
  using AnyLayer::AnyLayer;
};
std::string_view KindOf(const Layer& layer);  // as the model file spells it: "max_pool"

// "conv2": the kind, and the layer's number among those of its kind in its list. With the name of
// the residual around it ("residual1.conv2", "residual1.shortcut.conv1") it names the layer's
// tensors in checkpoints.
std::vector<std::string> LayerNames(const std::vector<Layer>& layers);

struct LayerError {
  // The path to the wrong layer: its index in the list. If the error is inside a residual, its
  // index is followed by 0 for its layers or 1 for its shortcut, and the index there; and so on.
  std::vector<std::size_t> place;
  std::string message;
  bool operator==(const LayerError&) const = default;
};

// The output shape of each layer, or an error for the first layer that does not fit its input.
std::expected<std::vector<Shape>, LayerError> InferShapes(const Shape& input,
                                                          const std::vector<Layer>& layers);

}  // namespace pliant::learner
