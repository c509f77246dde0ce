#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "trainer/checkpoint/state_dict.h"
#include "trainer/learner/model_spec.h"
#include "trainer/learner/torch.h"

// Includes torch's headers: include it only in the two files that compute with torch.
namespace pliant::learner {

// One fixed block of memory, divided into named tensors, so that a whole set of them can be copied,
// reduced or updated as one array.
class TensorArena {
 public:
  struct Slot {
    std::string name;
    DType dtype = DType::kFloat32;
    Shape shape;
  };
  explicit TensorArena(std::vector<Slot> slots);

  const std::vector<Slot>& slots() const { return slots_; }
  const std::vector<at::Tensor>& tensors() const { return tensors_; }
  std::span<std::byte> bytes() const;
  std::span<float> floats() const;  // only if all tensors are fp32: then there are no gaps
  // The tensors, named prefix + name + suffix.
  StateDict Views(std::string_view prefix, std::string_view suffix) const;

 private:
  std::vector<Slot> slots_;
  std::vector<std::size_t> offsets_;  // of each slot, in bytes
  at::Tensor memory_;
  std::vector<at::Tensor> tensors_;  // views of memory_
};

// The layers of a model as a function. It holds no state: parameters and buffers are arguments.
class Network {
 public:
  explicit Network(const ModelSpec& spec);

  std::vector<TensorArena::Slot> ParameterSlots() const;
  std::vector<TensorArena::Slot> BufferSlots() const;

  // Draws fresh parameters; the same seed gives the same bits.
  void Initialize(std::uint64_t seed, const TensorArena& parameters,
                  const TensorArena& buffers) const;

  struct Pass {
    const std::vector<at::Tensor>& parameters;
    const std::vector<at::Tensor>& buffers;  // training updates them with this batch's statistics
    bool training = false;
    std::uint64_t seed = 0;  // for dropout, in training
  };
  // One row of scores a sample.
  at::Tensor Forward(at::Tensor values, const Pass& pass) const {
    return Run(steps_, values, pass);
  }

  // The smallest batch to train on. It is 2 if some batch_norm has one value a sample and channel:
  // the variance of a single value does not exist.
  std::int64_t MinSamples() const;

 private:
  struct Step {
    std::string name;
    Layer layer;  // for a residual its layers are in `layers` and `shortcut`
    Shape in;
    std::size_t parameter = 0;  // index of its first parameter
    std::size_t buffer = 0;     // index of its first buffer
    std::uint64_t number = 0;   // index of the step in the whole model
    std::vector<Step> layers;
    std::vector<Step> shortcut;
  };
  // Totals of the steps made so far.
  struct Count {
    std::size_t parameters = 0;
    std::size_t buffers = 0;
    std::uint64_t steps = 0;
  };

  static std::vector<Step> MakeSteps(const std::vector<Layer>& layers, const Shape& input,
                                     const std::string& prefix, Count& count);
  static at::Tensor Run(const std::vector<Step>& steps, at::Tensor values, const Pass& pass);
  static at::Tensor Run(const Step& step, const at::Tensor& values, const Pass& pass);
  // Calls `visit` for each step, also within residuals, in the order of their parameters.
  template <typename Visit>
  static void ForEach(const std::vector<Step>& steps, const Visit& visit) {
    for (const Step& step : steps) {
      visit(step);
      ForEach(step.layers, visit);
      ForEach(step.shortcut, visit);
    }
  }

  std::vector<Step> steps_;
};

}  // namespace pliant::learner
