#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string_view>

namespace pliant {

// Objects and arrays in each other, of JSON that others wrote: nothing of ours has a tenth of it.
inline constexpr int kJsonLevelsMost = 100;

// Whether `text` opens more of them. Most of what is done with a value (to print, copy or compare
// it) calls itself for each level, so that a deep one ends the process where the stack does.
bool IsNestedTooDeep(std::string_view text);

// What is no JSON, or is nested too deep, is discarded.
nlohmann::json ParseJson(std::string_view text);

}  // namespace pliant
