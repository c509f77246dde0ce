#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace pliant {

// The beginning of `text` in `max_bytes` bytes at most, with no half of a character at its end.
// What is not UTF-8 becomes U+FFFD, as every JSON encoder would have it: so a text that was cut
// here reads back as it was written, and cutting it again changes nothing.
std::string CutAtCharacter(std::string_view text, std::size_t max_bytes);

}  // namespace pliant
