#include "base/utf8.h"

namespace pliant {
namespace {

constexpr std::string_view kReplacement = "\xEF\xBF\xBD";  // U+FFFD

// The length of the first character of `text`, which is not empty; 0 if it begins with no valid
// one.
std::size_t CharacterBytes(std::string_view text) {
  const auto byte = [&](std::size_t at) { return static_cast<unsigned char>(text[at]); };
  const unsigned char lead = byte(0);
  if (lead < 0x80) return 1;
  if (lead < 0xC2 || lead > 0xF4) return 0;
  const std::size_t bytes = lead < 0xE0 ? 2 : lead < 0xF0 ? 3 : 4;
  if (text.size() < bytes) return 0;
  for (std::size_t at = 1; at < bytes; ++at) {
    if ((byte(at) & 0xC0) != 0x80) return 0;
  }
  const unsigned char second = byte(1);
  const bool overlong = (lead == 0xE0 && second < 0xA0) || (lead == 0xF0 && second < 0x90);
  const bool surrogate = lead == 0xED && second > 0x9F;
  const bool beyond_last = lead == 0xF4 && second > 0x8F;
  return overlong || surrogate || beyond_last ? 0 : bytes;
}

}  // namespace

std::string CutAtCharacter(std::string_view text, std::size_t max_bytes) {
  std::string cut;
  while (!text.empty()) {
    const std::size_t bytes = CharacterBytes(text);
    const std::string_view character = bytes == 0 ? kReplacement : text.substr(0, bytes);
    if (cut.size() + character.size() > max_bytes) break;
    cut += character;
    text.remove_prefix(bytes == 0 ? 1 : bytes);
  }
  return cut;
}

}  // namespace pliant
