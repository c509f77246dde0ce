#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "operator/history/texts.h"
#include "operator/history/values.h"

namespace pliant::history {

// A value with its field, as it is kept: a text by its number.
struct Cell {
  enum class Type : std::uint8_t { kAbsent, kInteger, kReal, kText };
  Field field{};
  Type type = Type::kAbsent;
  std::uint64_t bits = 0;
  bool operator==(const Cell&) const = default;
};
using Cells = std::vector<Cell>;  // sorted by field, each field once

// About 3 bytes for a small number, and 9 for a real one.
std::string Pack(const Cells& cells);
Cells Unpack(std::string_view packed);

// Uses each text of `values` in `texts` once.
Cells ToCells(const Values& values, Texts& texts);
Value ToValue(const Cell& cell, const Texts& texts);  // not of an absent one

// The cells that turn `before` into `after`.
Cells Difference(const Cells& before, const Cells& after);
// `before` with the changes of a Difference.
Cells Changed(const Cells& before, const Cells& changes);

}  // namespace pliant::history
