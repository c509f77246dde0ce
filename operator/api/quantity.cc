#include "operator/api/quantity.h"

#include <array>
#include <charconv>
#include <cmath>
#include <limits>
#include <optional>
#include <string>
#include <utility>

#include "base/utf8.h"

namespace pliant::api {
namespace {

constexpr std::array<std::pair<std::string_view, double>, 16> kSuffixes{{
    {"", 1},
    {"n", 1e-9},
    {"u", 1e-6},
    {"m", 1e-3},
    {"k", 1e3},
    {"M", 1e6},
    {"G", 1e9},
    {"T", 1e12},
    {"P", 1e15},
    {"E", 1e18},
    {"Ki", 0x1p10},
    {"Mi", 0x1p20},
    {"Gi", 0x1p30},
    {"Ti", 0x1p40},
    {"Pi", 0x1p50},
    {"Ei", 0x1p60},
}};

std::optional<double> FactorOf(std::string_view suffix) {
  for (const auto& [name, factor] : kSuffixes) {
    if (name == suffix) return factor;
  }
  return std::nullopt;
}

// Reads "e3" or "E-2"; nullopt if it is not an exponent.
std::optional<double> FactorOfExponent(std::string_view text) {
  if (text.size() < 2 || (text[0] != 'e' && text[0] != 'E')) return std::nullopt;
  text.remove_prefix(text[1] == '+' ? 2 : 1);
  int exponent = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), exponent);
  if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return std::pow(10.0, exponent);
}

Result<std::int64_t> Parse(std::string_view text, double units) {
  const std::size_t digits = std::min(text.find_first_not_of("0123456789."), text.size());
  double number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + digits, number);
  std::optional<double> factor = FactorOf(text.substr(digits));
  if (!factor) factor = FactorOfExponent(text.substr(digits));
  if (digits == 0 || error != std::errc{} || end != text.data() + digits || !factor) {
    return Invalid("\"" + CutAtCharacter(text, 64) + "\" is no quantity such as 500m, 2 or 16Gi");
  }
  // 0 times any factor is 0, even if the factor exceeds a double ("0e400").
  const double value = number == 0 ? 0 : number * *factor * units;
  // The nearest double of "0.1" times 1000 may be slightly above 100; it must not be rounded up.
  const double rounded =
      std::abs(value - std::round(value)) < 1e-6 ? std::round(value) : std::ceil(value);
  if (rounded >= 0x1p63) return std::numeric_limits<std::int64_t>::max();
  return static_cast<std::int64_t>(rounded);
}

}  // namespace

Result<std::int64_t> ParseQuantity(std::string_view text) { return Parse(text, 1); }
Result<std::int64_t> ParseQuantityMillis(std::string_view text) { return Parse(text, 1000); }

}  // namespace pliant::api
