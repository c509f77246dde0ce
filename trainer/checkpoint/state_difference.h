#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "trainer/checkpoint/state_dict.h"

namespace pliant {

// Where two states part.
struct StateDifference {
  std::string tensor;          // the first that differs, in the order of the first state
  std::uint64_t element = 0;   // of it, the first
  std::uint64_t elements = 0;  // of it, how many; 0: it is not there, or of another shape
  std::uint64_t tensors = 0;   // how many differ in all
  bool operator==(const StateDifference&) const = default;
};
std::string ToString(const StateDifference& difference);

// None: they are the same bits.
std::optional<StateDifference> FindDifference(const StateDict& expected, const StateDict& found);

}  // namespace pliant
