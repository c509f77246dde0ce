#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace pliant {

// The beginning of `text` in at most `max_bytes` bytes, without a partial character at its end.
// Bytes that are not UTF-8 become U+FFFD, as in every JSON encoder: so a text that was cut here
// reads back as it was written, and cutting it again changes nothing.
std::string CutAtCharacter(std::string_view text, std::size_t max_bytes);

}  // namespace pliant
