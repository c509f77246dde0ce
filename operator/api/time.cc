#include "operator/api/time.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <optional>

#include "base/utf8.h"

namespace pliant::api {
namespace {

// Removes `digits` digits from the front; false if they are not there.
bool TakeNumber(std::string_view& text, std::size_t digits, int& number) {
  if (text.size() < digits) return false;
  const auto [end, error] = std::from_chars(text.data(), text.data() + digits, number);
  if (error != std::errc{} || end != text.data() + digits || number < 0) return false;
  text.remove_prefix(digits);
  return true;
}

bool TakeChar(std::string_view& text, char c) {
  if (text.empty() || text.front() != c) return false;
  text.remove_prefix(1);
  return true;
}

// nullopt if there is no such time. A leap second becomes the second after it.
std::optional<WallTime> TimeOf(std::chrono::year_month_day date, int h, int min, int s) {
  if (!date.ok() || h > 23 || min > 59 || s > 60) return std::nullopt;
  return std::chrono::sys_days(date) + std::chrono::hours(h) + std::chrono::minutes(min) +
         std::chrono::seconds(s);
}

int TakeMilliseconds(std::string_view& text) {
  int milliseconds = 0;
  int weight = 100;
  while (!text.empty() && text.front() >= '0' && text.front() <= '9') {
    milliseconds += weight * (text.front() - '0');
    weight /= 10;
    text.remove_prefix(1);
  }
  return milliseconds;
}

}  // namespace

Result<WallTime> ParseTime(std::string_view text) {
  using namespace std::chrono;
  const auto wrong = [whole = text] {
    return Invalid("\"" + CutAtCharacter(whole, 64) + "\" is no RFC 3339 time");
  };
  int y = 0, mon = 0, d = 0, h = 0, min = 0, s = 0;
  if (!TakeNumber(text, 4, y) || !TakeChar(text, '-') || !TakeNumber(text, 2, mon) ||
      !TakeChar(text, '-') || !TakeNumber(text, 2, d) || !TakeChar(text, 'T') ||
      !TakeNumber(text, 2, h) || !TakeChar(text, ':') || !TakeNumber(text, 2, min) ||
      !TakeChar(text, ':') || !TakeNumber(text, 2, s)) {
    return wrong();
  }
  std::optional<WallTime> time = TimeOf(
      year(y) / month(static_cast<unsigned>(mon)) / day(static_cast<unsigned>(d)), h, min, s);
  if (!time) return wrong();
  if (TakeChar(text, '.')) *time += milliseconds(TakeMilliseconds(text));
  if (text == "Z") return *time;
  const bool behind = !text.empty() && text.front() == '-';
  if (!TakeChar(text, behind ? '-' : '+') || !TakeNumber(text, 2, h) || !TakeChar(text, ':') ||
      !TakeNumber(text, 2, min) || !text.empty()) {
    return wrong();
  }
  const auto offset = hours(h) + minutes(min);
  return behind ? *time + offset : *time - offset;
}

Result<WallTime> ParseHttpDate(std::string_view text) {
  static constexpr std::string_view kMonths = "JanFebMarAprMayJunJulAugSepOctNovDec";
  const auto wrong = [text] {
    return Invalid("\"" + CutAtCharacter(std::string(text), 64) + "\" is no date of HTTP");
  };
  std::string_view rest = text;
  const auto take = [&rest](std::string_view literal) {
    const bool there = rest.starts_with(literal);
    if (there) rest.remove_prefix(literal.size());
    return there;
  };
  int d = 0, y = 0, h = 0, min = 0, s = 0;
  if (rest.size() < 3) return wrong();
  rest.remove_prefix(3);  // the day of the week is redundant
  if (!take(", ") || !TakeNumber(rest, 2, d) || !take(" ")) return wrong();
  const std::size_t month_at = kMonths.find(rest.substr(0, 3));
  if (rest.size() < 3 || month_at % 3 != 0 || month_at == std::string_view::npos) return wrong();
  rest.remove_prefix(3);
  const bool whole = take(" ") && TakeNumber(rest, 4, y) && take(" ") && TakeNumber(rest, 2, h) &&
                     take(":") && TakeNumber(rest, 2, min) && take(":") && TakeNumber(rest, 2, s) &&
                     rest == " GMT";
  const std::chrono::year_month_day date{std::chrono::year(y),
                                         std::chrono::month(unsigned(month_at / 3 + 1)),
                                         std::chrono::day(unsigned(d))};
  const std::optional<WallTime> time = whole ? TimeOf(date, h, min, s) : std::nullopt;
  if (!time) return wrong();
  return *time;
}

std::string FormatTime(WallTime time) {
  using namespace std::chrono;
  const auto whole = floor<seconds>(time);
  const auto day = floor<days>(whole);
  const year_month_day date(day);
  const hh_mm_ss clock(whole - day);
  char text[32];
  std::snprintf(text, sizeof text, "%04d-%02u-%02uT%02d:%02d:%02dZ", int(date.year()),
                unsigned(date.month()), unsigned(date.day()), int(clock.hours().count()),
                int(clock.minutes().count()), int(clock.seconds().count()));
  return text;
}

WallTime FromUnixSeconds(double seconds) {
  constexpr double kLast = 253'402'300'799;  // 9999-12-31T23:59:59Z
  const double bounded = std::clamp(seconds, 0.0, kLast);
  return WallTime(std::chrono::milliseconds(std::llround(bounded * 1000)));
}

}  // namespace pliant::api
