#pragma once

#include <cstddef>
#include <string>
#include <string_view>

// Texts and numbers as reports show them.
namespace pliant::simulator {

// With this number of digits after the point, in every locale. "-" if it is not finite.
std::string Fixed(double value, int digits);

// "90 s", "12.5 min", "3.0 h", "2.0 d"
std::string ShownSeconds(double seconds);

// A name from a file: at most `max_bytes` bytes, then "...". Bytes that are not UTF-8 and control
// characters become U+FFFD.
std::string ShownName(std::string_view name, std::size_t max_bytes);

// For the text and the attributes of HTML and SVG.
std::string Escaped(std::string_view text);

// Bytes of a name that are shown where there is space for a line.
inline constexpr std::size_t kMaxLineBytes = 80;

// A name, cut to this and escaped.
std::string EscapedName(std::string_view name);

}  // namespace pliant::simulator
