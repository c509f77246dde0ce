#include "trainer/learner/layers.h"

#include <functional>
#include <map>
#include <numeric>
#include <utility>

#include "base/check.h"
#include "base/format.h"
#include "base/overloaded.h"

namespace pliant::learner {
namespace {

// More than a layer of any model that fits into one CPU or GPU; keeps products within 63 bits.
constexpr std::int64_t kMaxElements = std::int64_t{1} << 40;

using ShapeOrReason = std::expected<Shape, std::string>;
using ShapeOrError = std::expected<Shape, LayerError>;

std::unexpected<std::string> NeedsImage(std::string_view kind, const Shape& shape) {
  return std::unexpected(Format(
      "{} needs an image (channels x height x width), but gets {} values in a row: put it before "
      "flatten and linear",
      kind, ToString(shape)));
}

ShapeOrReason Slide(std::string_view kind, const Shape& in, std::int64_t channels,
                    std::int64_t kernel, std::int64_t stride, std::int64_t padding) {
  if (in.size() != 3) return NeedsImage(kind, in);
  Shape out = {channels};
  for (const std::size_t side : {1, 2}) {
    const std::int64_t room = in[side] + 2 * padding - kernel;
    if (room < 0) {
      return std::unexpected(
          Format("a kernel of {} does not fit into {} with padding {}: make the kernel "
                 "smaller, or pool less before",
                 kernel, ToString(in), padding));
    }
    out.push_back(room / stride + 1);
  }
  return out;
}

// For a layer that contains no other layers.
ShapeOrReason InferPlain(const Layer& layer, const Shape& in) {
  return std::visit(
      Overloaded{
          [&](const Conv& conv) {
            return Slide("conv", in, conv.out, conv.kernel, conv.stride, conv.padding);
          },
          [&](const Linear& linear) -> ShapeOrReason {
            if (in.size() != 1) {
              return std::unexpected(
                  Format("linear needs values in a row, but gets {}: put flatten before it",
                         ToString(in)));
            }
            return Shape{linear.out};
          },
          [&](const MaxPool& pool) {
            return Slide("max_pool", in, in[0], pool.kernel, pool.stride, 0);
          },
          [&](const AvgPool& pool) {
            return Slide("avg_pool", in, in[0], pool.kernel, pool.stride, 0);
          },
          [&](const Flatten&) -> ShapeOrReason { return Shape{Elements(in)}; },
          [&](const auto&) -> ShapeOrReason { return in; },
      },
      layer);
}

LayerError Within(const std::string& part, std::size_t list, LayerError error) {
  error.place.insert(error.place.begin(), list);
  error.message.insert(std::string_view("layer ").size(), part);
  return error;
}

ShapeOrError InferList(const Shape& in, const std::vector<Layer>& layers) {
  if (layers.empty()) return in;
  auto shapes = InferShapes(in, layers);
  if (!shapes) return std::unexpected(std::move(shapes).error());
  return std::move(shapes->back());
}

ShapeOrError InferResidual(const Residual& residual, const std::string& name, const Shape& in) {
  auto out = InferList(in, residual.layers);
  if (!out) return std::unexpected(Within(name + ".", 0, std::move(out).error()));
  auto around = InferList(in, residual.shortcut);
  if (!around) return std::unexpected(Within(name + ".shortcut.", 1, std::move(around).error()));
  if (*out == *around) return out;
  return std::unexpected(LayerError{
      .place = {},
      .message = Format(
          "layer {}: its layers give {}, but {} gives {}, and the two are added: {}", name,
          ToString(*out), residual.shortcut.empty() ? "the unchanged input" : "its shortcut",
          ToString(*around),
          residual.shortcut.empty()
              ? Format("give it a shortcut such as [conv: {{out: {}, kernel: 1}}]", (*out)[0])
              : "make both equal")});
}

ShapeOrError Infer(const Layer& layer, const std::string& name, const Shape& in) {
  if (const auto* residual = std::get_if<Residual>(&layer)) {
    return InferResidual(*residual, name, in);
  }
  auto shape = InferPlain(layer, in);
  if (shape && Elements(*shape) > kMaxElements) {
    shape = std::unexpected(Format("its output of {} is too large", ToString(*shape)));
  }
  if (shape) return *std::move(shape);
  return std::unexpected(
      LayerError{.place = {}, .message = Format("layer {}: {}", name, std::move(shape).error())});
}

}  // namespace

bool Residual::operator==(const Residual& other) const {
  return layers == other.layers && shortcut == other.shortcut;
}

std::string ToString(const Shape& shape) {
  std::string text;
  for (const std::int64_t side : shape) {
    text += Format("{}{}", text.empty() ? "" : "x", side);
  }
  return text;
}

std::int64_t Elements(const Shape& shape) {
  return std::accumulate(shape.begin(), shape.end(), std::int64_t{1}, std::multiplies<>());
}

std::string_view KindOf(const Layer& layer) {
  return std::visit(Overloaded{
                        [](const Conv&) { return "conv"; },
                        [](const Linear&) { return "linear"; },
                        [](const BatchNorm&) { return "batch_norm"; },
                        [](const Relu&) { return "relu"; },
                        [](const MaxPool&) { return "max_pool"; },
                        [](const AvgPool&) { return "avg_pool"; },
                        [](const Flatten&) { return "flatten"; },
                        [](const Dropout&) { return "dropout"; },
                        [](const Residual&) { return "residual"; },
                    },
                    layer);
}

std::vector<std::string> LayerNames(const std::vector<Layer>& layers) {
  std::map<std::string_view, int> seen;
  std::vector<std::string> names;
  names.reserve(layers.size());
  for (const Layer& layer : layers) {
    names.push_back(Format("{}{}", KindOf(layer), ++seen[KindOf(layer)]));
  }
  return names;
}

std::expected<std::vector<Shape>, LayerError> InferShapes(const Shape& input,
                                                          const std::vector<Layer>& layers) {
  CHECK(input.size() == 1 || input.size() == 3, "a model's input is a row or an image");
  const std::vector<std::string> names = LayerNames(layers);
  std::vector<Shape> shapes;
  shapes.reserve(layers.size());
  for (std::size_t index = 0; index < layers.size(); ++index) {
    auto shape = Infer(layers[index], names[index], shapes.empty() ? input : shapes.back());
    if (!shape) {
      LayerError error = std::move(shape).error();
      error.place.insert(error.place.begin(), index);
      return std::unexpected(std::move(error));
    }
    shapes.push_back(*std::move(shape));
  }
  return shapes;
}

}  // namespace pliant::learner
