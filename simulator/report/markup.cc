#include "simulator/report/markup.h"

#include <cmath>

#include "base/format.h"
#include "base/utf8.h"

namespace pliant::simulator {
namespace {

constexpr std::string_view kReplacement = "\xef\xbf\xbd";  // U+FFFD

bool IsControl(char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7f; }

}  // namespace

std::string Fixed(double value, int digits) {
  if (!std::isfinite(value)) return "-";
  std::string text = Format("{:.{}f}", value, digits);
  const bool is_zero = text.find_first_not_of("-0.") == std::string::npos;
  return is_zero && text.front() == '-' ? text.substr(1) : text;
}

std::string ShownSeconds(double seconds) {
  if (seconds < 120) return Fixed(seconds, 0) + " s";
  if (seconds < 7200) return Fixed(seconds / 60, 1) + " min";
  if (seconds < 48 * 3600.0) return Fixed(seconds / 3600, 1) + " h";
  return Fixed(seconds / 86400, 1) + " d";
}

std::string ShownName(std::string_view name, std::size_t max_bytes) {
  // A little more than is shown, so that a cut is noticed; a huge name is not read to its end.
  const std::string whole = CutAtCharacter(name.substr(0, max_bytes + 8), max_bytes + 8);
  std::string cut = whole.size() > max_bytes ? CutAtCharacter(whole, max_bytes) + "..." : whole;
  std::string shown;
  for (const char c : cut) {
    if (IsControl(c)) {
      shown += kReplacement;
    } else {
      shown += c;
    }
  }
  return shown;
}

std::string Escaped(std::string_view text) {
  std::string escaped;
  for (const char c : text) {
    switch (c) {
      case '&':
        escaped += "&amp;";
        break;
      case '<':
        escaped += "&lt;";
        break;
      case '>':
        escaped += "&gt;";
        break;
      case '"':
        escaped += "&quot;";
        break;
      case '\'':
        escaped += "&#39;";
        break;
      default:
        escaped += c;
    }
  }
  return escaped;
}

std::string EscapedName(std::string_view name) { return Escaped(ShownName(name, kMaxLineBytes)); }

}  // namespace pliant::simulator
