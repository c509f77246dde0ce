#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "trainer/checkpoint/state_dict.h"

namespace pliant {

// The first difference between two states.
struct StateDifference {
  std::string tensor;          // the first tensor that differs, in the order of the first state
  std::uint64_t element = 0;   // the index of its first element that differs
  std::uint64_t elements = 0;  // the number of such elements; 0: missing, or other type or shape
  std::uint64_t tensors = 0;   // the number of tensors that differ
  bool operator==(const StateDifference&) const = default;
};
std::string ToString(const StateDifference& difference);

// None: all bits are equal.
std::optional<StateDifference> FindDifference(const StateDict& expected, const StateDict& found);

}  // namespace pliant
