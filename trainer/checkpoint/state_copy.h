#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "trainer/checkpoint/state_dict.h"

namespace pliant {

// Training state in memory of its own: to be written while training continues, or read from a file.
class StateCopy {
 public:
  StateCopy() = default;
  // Zeroed tensors of the same names, types and shapes.
  static StateCopy Like(const StateDict& state);
  static StateCopy Of(const StateDict& state);

  // Copies the bytes of `state`; allocates only if its tensors' names, types or shapes changed.
  void CopyFrom(const StateDict& state);

  // Borrowed from this object; stays valid when it is moved.
  const StateDict& view() const { return view_; }
  std::size_t bytes() const { return bytes_; }

 private:
  struct Free {
    void operator()(std::byte* memory) const;
  };

  std::unique_ptr<std::byte, Free> memory_;  // every tensor in it begins on a cache line
  std::size_t bytes_ = 0;
  StateDict view_;
};

// Copies all tensors of `from` into those of `to`. kInvalid, naming the tensor, unless both have
// the same names, types and shapes (the order may differ); then nothing was copied.
Status CopyState(const StateDict& from, const StateDict& to);

// "2,3", and "" for a scalar.
std::string ShapeText(const std::vector<std::int64_t>& shape);

}  // namespace pliant
