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

// Includes torch: for the two files that compute with it.
namespace pliant::learner {

// One fixed piece of memory cut into named tensors, so that a whole set of them is copied, reduced
// or stepped as one array.
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
  std::span<float> floats() const;  // of an arena of fp32 tensors: no gaps between them
  // The tensors under prefix + name + suffix.
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

  // One row of scores a sample. In training the buffers take in this batch's statistics.
  at::Tensor Forward(at::Tensor values, const std::vector<at::Tensor>& parameters,
                     const std::vector<at::Tensor>& buffers, bool training) const;

  // The smallest batch to train on: the variance of a single value, which batch_norm would meet in
  // a batch of one sample, does not exist.
  std::int64_t SamplesLeast() const;

 private:
  struct Step {
    std::string name;
    Layer layer;
    Shape in;
    std::size_t parameter = 0;  // index of its first parameter
    std::size_t buffer = 0;     // index of its first buffer
  };
  std::vector<Step> steps_;
};

}  // namespace pliant::learner
