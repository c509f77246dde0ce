#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "trainer/checkpoint/state_dict.h"

namespace pliant {

// Training state in memory of its own: what is written while training goes on, or was read.
class StateCopy {
 public:
  StateCopy() = default;
  // Zeroed tensors of the same names, types and shapes.
  static StateCopy Like(const StateDict& state);
  static StateCopy Of(const StateDict& state);

  // Takes over the bytes of `state`; allocates only when its tensors differ from those held.
  void CopyFrom(const StateDict& state);

  // Borrowed from this object; stays valid when it is moved.
  const StateDict& view() const { return view_; }
  std::size_t bytes() const { return bytes_; }

 private:
  struct Free {
    void operator()(std::byte* memory) const;
  };

  std::unique_ptr<std::byte, Free> memory_;  // in it every tensor begins on a cache line
  std::size_t bytes_ = 0;
  StateDict view_;
};

// Copies all tensors of `from` into those of `to`. kInvalid, naming the tensor, unless both have
// the same names, types and shapes (the order may differ); then nothing was copied.
Status CopyState(const StateDict& from, const StateDict& to);

// "2,3", and "" for a scalar.
std::string ShapeText(const std::vector<std::int64_t>& shape);

}  // namespace pliant
