#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "trainer/checkpoint/state_dict.h"

namespace pliant {

// Training state in host memory of its own: to be written while training continues, or read from a
// file.
class StateCopy {
 public:
  StateCopy() = default;
  // Zeroed tensors of the same names, types and shapes.
  static StateCopy Like(const StateDict& state);
  // A copy of tensors in host memory.
  static StateCopy Of(const StateDict& state);

  // Copies the bytes of `state`; allocates only if its tensors' names, types or shapes changed. An
  // error of a device leaves the contents undefined.
  Status CopyFrom(const StateDict& state);

  // Borrowed from this object; stays valid when it is moved.
  const StateDict& view() const { return view_; }
  std::size_t bytes() const { return bytes_; }

 private:
  // `memory` has `bytes` bytes and room for alignment.
  static StateCopy In(std::shared_ptr<std::byte> memory, std::size_t bytes, const StateDict& state);

  std::shared_ptr<std::byte> memory_;  // every tensor in it begins on a cache line
  std::size_t bytes_ = 0;
  StateDict view_;
};

// Copies tensors into others of the same sizes, wherever they are; a device's as its DeviceMemory
// says.
struct TensorCopy {
  const TensorView* from = nullptr;
  const TensorView* to = nullptr;
};
Status CopyTensors(std::span<const TensorCopy> copies);

// Copies all tensors of `from` into those of `to`. kInvalid, naming the tensor, unless both have
// the same names, types and shapes (the order may differ); then nothing was copied.
Status CopyState(const StateDict& from, const StateDict& to);

// "2,3", and "" for a scalar.
std::string ShapeText(const std::vector<std::int64_t>& shape);

}  // namespace pliant
