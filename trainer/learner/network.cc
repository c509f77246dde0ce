#include "trainer/learner/network.h"

#include <cmath>
#include <utility>

#include "base/format.h"
#include "trainer/data/permutation.h"
#include "trainer/learner/dropout.h"

namespace pliant::learner {
namespace {

// PyTorch's defaults, which the author of a model file expects.
constexpr double kBatchNormMomentum = 0.1;
constexpr double kBatchNormEpsilon = 1e-5;

constexpr std::uint64_t kDropout = 2;  // separates these draws from others of the same seed

at::ScalarType TorchType(DType dtype) {
  switch (dtype) {
    case DType::kFloat32:
      return at::kFloat;
    case DType::kInt64:
      return at::kLong;
    default:
      CheckFailed("dtype", "a network holds fp32 and int64 only", __FILE__, __LINE__);
  }
}

// The parameters of a layer, in this order.
std::vector<TensorArena::Slot> ParametersOf(const Layer& layer, const Shape& in) {
  if (const auto* conv = std::get_if<Conv>(&layer)) {
    return {{"weight", DType::kFloat32, {conv->out, in[0], conv->kernel, conv->kernel}},
            {"bias", DType::kFloat32, {conv->out}}};
  }
  if (const auto* linear = std::get_if<Linear>(&layer)) {
    return {{"weight", DType::kFloat32, {linear->out, in[0]}},
            {"bias", DType::kFloat32, {linear->out}}};
  }
  if (std::holds_alternative<BatchNorm>(layer)) {
    return {{"weight", DType::kFloat32, {in[0]}}, {"bias", DType::kFloat32, {in[0]}}};
  }
  return {};
}

std::vector<TensorArena::Slot> BuffersOf(const Layer& layer, const Shape& in) {
  if (!std::holds_alternative<BatchNorm>(layer)) return {};
  return {{"running_mean", DType::kFloat32, {in[0]}},
          {"running_var", DType::kFloat32, {in[0]}},
          {"num_batches_tracked", DType::kInt64, {}}};
}

}  // namespace

TensorArena::TensorArena(std::vector<Slot> slots) : slots_(std::move(slots)) {
  std::size_t bytes = 0;
  for (const Slot& slot : slots_) {
    const std::size_t size = at::elementSize(TorchType(slot.dtype));
    bytes = (bytes + size - 1) / size * size;
    offsets_.push_back(bytes);
    bytes += size * static_cast<std::size_t>(Elements(slot.shape));
  }
  memory_ = at::zeros({static_cast<std::int64_t>(bytes)}, at::kByte);
  for (std::size_t i = 0; i < slots_.size(); ++i) {
    const at::ScalarType type = TorchType(slots_[i].dtype);
    const auto length =
        static_cast<std::int64_t>(at::elementSize(type)) * Elements(slots_[i].shape);
    // variable_data: each view gets its own version counter. Otherwise autograd would take an
    // in-place update of one buffer for a change of all others.
    tensors_.push_back(memory_.narrow(0, static_cast<std::int64_t>(offsets_[i]), length)
                           .view(type)
                           .view(slots_[i].shape)
                           .variable_data());
  }
}

std::span<std::byte> TensorArena::bytes() const {
  return {static_cast<std::byte*>(memory_.data_ptr()), memory_.nbytes()};
}

std::span<float> TensorArena::floats() const {
  for (const Slot& slot : slots_) CHECK(slot.dtype == DType::kFloat32, "an arena of fp32 tensors");
  return {static_cast<float*>(memory_.data_ptr()), memory_.nbytes() / sizeof(float)};
}

StateDict TensorArena::Views(std::string_view prefix, std::string_view suffix) const {
  StateDict views;
  for (std::size_t i = 0; i < slots_.size(); ++i) {
    views.push_back({.name = Format("{}{}{}", prefix, slots_[i].name, suffix),
                     .dtype = slots_[i].dtype,
                     .shape = slots_[i].shape,
                     .bytes = bytes().subspan(offsets_[i], tensors_[i].nbytes())});
  }
  return views;
}

Network::Network(const ModelSpec& spec) {
  Count count;
  steps_ = MakeSteps(spec.layers, spec.input, "", count);
}

std::vector<Network::Step> Network::MakeSteps(const std::vector<Layer>& layers, const Shape& input,
                                              const std::string& prefix, Count& count) {
  const auto shapes = InferShapes(input, layers);
  CHECK(shapes.has_value(), "the model file's reader has checked the shapes");
  const std::vector<std::string> names = LayerNames(layers);
  std::vector<Step> steps;
  for (std::size_t i = 0; i < layers.size(); ++i) {
    Step step = {.name = prefix + names[i],
                 .layer = layers[i],
                 .in = i == 0 ? input : (*shapes)[i - 1],
                 .parameter = count.parameters,
                 .buffer = count.buffers,
                 .number = count.steps++,
                 .layers = {},
                 .shortcut = {}};
    count.parameters += ParametersOf(step.layer, step.in).size();
    count.buffers += BuffersOf(step.layer, step.in).size();
    if (const auto* residual = std::get_if<Residual>(&layers[i])) {
      step.layers = MakeSteps(residual->layers, step.in, step.name + ".", count);
      step.shortcut = MakeSteps(residual->shortcut, step.in, step.name + ".shortcut.", count);
    }
    steps.push_back(std::move(step));
  }
  return steps;
}

std::vector<TensorArena::Slot> Network::ParameterSlots() const {
  std::vector<TensorArena::Slot> slots;
  ForEach(steps_, [&](const Step& step) {
    for (TensorArena::Slot& slot : ParametersOf(step.layer, step.in)) {
      slot.name = Format("{}.{}", step.name, slot.name);
      slots.push_back(std::move(slot));
    }
  });
  return slots;
}

std::vector<TensorArena::Slot> Network::BufferSlots() const {
  std::vector<TensorArena::Slot> slots;
  ForEach(steps_, [&](const Step& step) {
    for (TensorArena::Slot& slot : BuffersOf(step.layer, step.in)) {
      slot.name = Format("{}.{}", step.name, slot.name);
      slots.push_back(std::move(slot));
    }
  });
  return slots;
}

void Network::Initialize(std::uint64_t seed, const TensorArena& parameters,
                         const TensorArena& buffers) const {
  const c10::NoGradGuard no_grad;
  const at::Generator generator = at::detail::createCPUGenerator(seed);
  ForEach(steps_, [&](const Step& step) {
    if (std::holds_alternative<BatchNorm>(step.layer)) {
      parameters.tensors()[step.parameter].fill_(1);
      parameters.tensors()[step.parameter + 1].fill_(0);
      buffers.tensors()[step.buffer].fill_(0);
      buffers.tensors()[step.buffer + 1].fill_(1);
      buffers.tensors()[step.buffer + 2].fill_(0);
    } else if (!ParametersOf(step.layer, step.in).empty()) {
      const at::Tensor& weight = parameters.tensors()[step.parameter];
      const double inputs =
          static_cast<double>(weight.numel()) / static_cast<double>(weight.size(0));
      const double bound = 1.0 / std::sqrt(inputs);
      weight.uniform_(-bound, bound, generator);
      parameters.tensors()[step.parameter + 1].uniform_(-bound, bound, generator);
    }
  });
}

at::Tensor Network::Run(const std::vector<Step>& steps, at::Tensor values, const Pass& pass) {
  for (const Step& step : steps) values = Run(step, values, pass);
  return values;
}

at::Tensor Network::Run(const Step& step, const at::Tensor& values, const Pass& pass) {
  const auto parameter = [&](std::size_t index) { return pass.parameters[step.parameter + index]; };
  if (const auto* conv = std::get_if<Conv>(&step.layer)) {
    return at::conv2d(values, parameter(0), parameter(1), {conv->stride, conv->stride},
                      at::IntArrayRef{conv->padding, conv->padding});
  }
  if (std::holds_alternative<Linear>(step.layer)) {
    return at::linear(values, parameter(0), parameter(1));
  }
  if (std::holds_alternative<BatchNorm>(step.layer)) {
    if (pass.training) pass.buffers[step.buffer + 2].add_(1);
    return at::batch_norm(values, parameter(0), parameter(1), pass.buffers[step.buffer],
                          pass.buffers[step.buffer + 1], pass.training, kBatchNormMomentum,
                          kBatchNormEpsilon, /*cudnn_enabled=*/false);
  }
  if (std::holds_alternative<Relu>(step.layer)) return at::relu(values);
  if (const auto* pool = std::get_if<MaxPool>(&step.layer)) {
    return at::max_pool2d(values, {pool->kernel, pool->kernel}, {pool->stride, pool->stride});
  }
  if (const auto* pool = std::get_if<AvgPool>(&step.layer)) {
    return at::avg_pool2d(values, {pool->kernel, pool->kernel}, {pool->stride, pool->stride});
  }
  if (const auto* dropout = std::get_if<Dropout>(&step.layer)) {
    if (!pass.training) return values;
    const at::Tensor mask = at::empty(values.sizes(), at::kFloat);
    FillDropoutMask(HashWords({pass.seed, kDropout, step.number}), dropout->rate,
                    {mask.data_ptr<float>(), static_cast<std::size_t>(mask.numel())});
    return values * mask;
  }
  if (std::holds_alternative<Residual>(step.layer)) {
    return Run(step.layers, values, pass) + Run(step.shortcut, values, pass);
  }
  return at::flatten(values, 1);
}

std::int64_t Network::MinSamples() const {
  std::int64_t least = 1;
  ForEach(steps_, [&](const Step& step) {
    const bool normalizes = std::holds_alternative<BatchNorm>(step.layer);
    if (normalizes && Elements(step.in) == step.in[0]) least = 2;
  });
  return least;
}

}  // namespace pliant::learner
