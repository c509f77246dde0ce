#include "simulator/inputs/values.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <optional>
#include <system_error>

namespace pliant::simulator {
namespace {

struct Unit {
  std::string_view name;
  std::int64_t millis;
};
constexpr std::array<Unit, 6> kUnits = {
    {{"ms", 1}, {"s", 1'000}, {"m", 60'000}, {"h", 3'600'000}, {"d", 86'400'000}, {"", 1'000}}};

// A whole number at the beginning of a text, and the text behind it.
struct Number {
  std::int64_t value = 0;
  bool is_too_large = false;
  std::string_view rest;
};

std::optional<Number> NumberOf(std::string_view text) {
  Number number;
  const char* const end = text.data() + text.size();
  const auto [at, error] = std::from_chars(text.data(), end, number.value);
  if (error == std::errc::invalid_argument) return std::nullopt;
  number.is_too_large = error != std::errc();
  number.rest = text.substr(static_cast<std::size_t>(at - text.data()));
  return number;
}

}  // namespace

Result<std::int64_t> ParseWhole(std::string_view text, replay::Bounds bounds) {
  const std::optional<Number> number = NumberOf(text);
  if (!number || !number->rest.empty() || number->is_too_large || number->value < bounds.min ||
      number->value > bounds.max) {
    return Invalid(
        Format("is {}; write a whole number from {} to {}", Shown(text), bounds.min, bounds.max));
  }
  return number->value;
}

Result<std::int64_t> ParseMillis(std::string_view text, std::int64_t min) {
  const std::optional<Number> number = NumberOf(text);
  const auto unit =
      std::ranges::find(kUnits, number ? number->rest : std::string_view("?"), &Unit::name);
  if (unit == kUnits.end()) {
    return Invalid(
        Format("is {}; write a duration, for example 250ms, 53s, 10m, 2h or 1d", Shown(text)));
  }
  if (number->is_too_large || number->value > kMaxMillis / unit->millis) {
    return Invalid(
        Format("is {}; write a duration of at most {}s", Shown(text), kMaxMillis / 1000));
  }
  if (number->value < 0 || number->value * unit->millis < min) {
    return Invalid(Format("is {}; write a duration of at least {}ms", Shown(text), min));
  }
  return number->value * unit->millis;
}

Result<bool> ParseFlag(std::string_view text) {
  if (text == "true") return true;
  if (text == "false") return false;
  return Invalid(Format("is {}; write true or false", Shown(text)));
}

}  // namespace pliant::simulator
