#include "simulator/nearest.h"

#include <algorithm>
#include <cstddef>
#include <numeric>
#include <vector>

namespace pliant::simulator {
namespace {

// Longer texts are as near as their begin: the time grows with the product of both sizes.
constexpr std::size_t kMaxCompared = 64;

// Only letters of ASCII change.
char Small(char letter) {
  return letter >= 'A' && letter <= 'Z' ? static_cast<char>(letter - 'A' + 'a') : letter;
}

std::size_t Distance(std::string_view from, std::string_view to) {
  from = from.substr(0, kMaxCompared);
  // By prefix of `to`: the distance of the letters of `from` so far.
  std::vector<std::size_t> row(to.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (const char letter : from) {
    std::size_t diagonal = row[0]++;
    for (std::size_t at = 1; at <= to.size(); ++at) {
      const std::size_t replaced = diagonal + (Small(letter) == Small(to[at - 1]) ? 0 : 1);
      diagonal = row[at];
      row[at] = std::min({replaced, row[at] + 1, row[at - 1] + 1});
    }
  }
  return row.back();
}

}  // namespace

std::string_view Nearest(std::string_view text, std::span<const std::string_view> names) {
  return std::ranges::min(names, {}, [&](std::string_view name) { return Distance(text, name); });
}

}  // namespace pliant::simulator
