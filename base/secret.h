#pragma once

#include <string_view>

namespace pliant {

// Takes the same time wherever the two differ, so that a token cannot be guessed byte by byte. No
// text equals an empty secret: a token that was never set admits nobody.
bool ConstantTimeEquals(std::string_view offered, std::string_view secret);

}  // namespace pliant
