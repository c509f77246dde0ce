#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace pliant::replay {

// Rows of equal length, the first of which is the heading, as lines of aligned columns. A column
// whose cells are all numbers, such as 12, -0.5 and -, is aligned at its right side.
std::string TextTable(const std::vector<std::vector<std::string>>& rows);

// For a terminal: names and sentences of others may have control characters.
std::string Printable(std::string_view text);

}  // namespace pliant::replay
