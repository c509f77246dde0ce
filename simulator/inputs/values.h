#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/format.h"
#include "base/result.h"
#include "operator/replay/describe.h"
#include "simulator/model/csv.h"

// Values in texts of people. Every error is the end of a sentence, with its remedy: "is -1; write a
// whole number from 1 to 10000".
namespace pliant::simulator {

// The longest duration: 31 years in milliseconds.
inline constexpr std::int64_t kMaxMillis = 1'000'000'000'000;

Result<std::int64_t> ParseWhole(std::string_view text, replay::Bounds bounds);

// Parses "250ms", "53s", "10m", "2h" or "1d", or a whole number of seconds. Returns milliseconds
// from `min` to kMaxMillis.
Result<std::int64_t> ParseMillis(std::string_view text, std::int64_t min = 0);

Result<bool> ParseFlag(std::string_view text);

// Parses the ToString of a value up to `last`, the last one of the enumeration.
template <typename Enum>
Result<Enum> ParseWord(std::string_view text, Enum last) {
  std::string known;
  for (int index = 0; index <= static_cast<int>(last); ++index) {
    const auto value = static_cast<Enum>(index);
    if (ToString(value) == text) return value;
    known.append(known.empty() ? "" : ", ").append(ToString(value));
  }
  return Invalid(Format("is {}; write one of {}", Shown(text), known));
}

// "a, b", or "none"; of many the first ten and the number of the others.
template <typename Names>
std::string Listed(const Names& names) {
  constexpr int kMaxListed = 10;
  std::string text;
  std::int64_t count = 0;
  for (const std::string& name : names) {
    if (++count <= kMaxListed) text.append(text.empty() ? "" : ", ").append(name);
  }
  if (count > kMaxListed) text += Format(" and {} more", count - kMaxListed);
  return count == 0 ? "none" : text;
}

}  // namespace pliant::simulator
