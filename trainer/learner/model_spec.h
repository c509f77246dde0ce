#pragma once

#include <cstdint>
#include <expected>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/result.h"

// What a model file says, as a value: no YAML, no torch.
namespace pliant::learner {

// One sample without its batch dimension: {channels, height, width}, or {features} once flat.
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
using Layer = std::variant<Conv, Linear, BatchNorm, Relu, MaxPool, AvgPool, Flatten>;
std::string_view KindOf(const Layer& layer);  // as the model file spells it: "max_pool"

struct TrainSpec {
  std::uint64_t epochs = 1;
  double learning_rate = 0.1;
  double momentum = 0;
  double weight_decay = 0;
  // Of the job; a model file may repeat them, and then they must agree.
  std::optional<std::uint64_t> batch_size;
  std::optional<std::uint64_t> seed;
  bool operator==(const TrainSpec&) const = default;
};

// Handwritten digits as CSV, one image a line: 64 pixels of 0..16, then the digit.
struct DigitsSpec {
  std::filesystem::path train;
  std::filesystem::path test;
  bool operator==(const DigitsSpec&) const = default;
};
inline constexpr std::int64_t kDigitClasses = 10;
inline constexpr std::int64_t kDigitPixels = 64;

struct ModelSpec {
  std::string name;
  Shape input;
  std::vector<Layer> layers;
  TrainSpec train;
  DigitsSpec data;
  bool operator==(const ModelSpec&) const = default;
};

// "conv2": the kind, and which of its kind it is. Names the layer's tensors in checkpoints.
std::vector<std::string> LayerNames(const std::vector<Layer>& layers);

struct LayerError {
  std::size_t layer = 0;  // index into ModelSpec::layers
  std::string message;
  bool operator==(const LayerError&) const = default;
};

// The shape that each layer gives, or the first layer that cannot take the shape before it.
std::expected<std::vector<Shape>, LayerError> InferShapes(const Shape& input,
                                                          const std::vector<Layer>& layers);

// What the job's spec says, where it says it.
struct JobSettings {
  std::optional<std::uint64_t> global_batch_size;
  std::optional<std::uint64_t> seed;
};
// kInvalid, naming both values, where the model file contradicts the job.
Status CheckAgainstJob(const TrainSpec& train, const JobSettings& job);

}  // namespace pliant::learner
