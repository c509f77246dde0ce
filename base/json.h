#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string_view>

namespace pliant {

// The deepest nesting of objects and arrays that is accepted in JSON from others. Ours is not even
// a tenth as deep.
inline constexpr int kMaxJsonLevels = 100;

// Whether `text` is nested deeper than that. Printing, copying and comparing a value recurse for
// each level, so a deep value would overflow the stack.
bool IsNestedTooDeep(std::string_view text);

// Returns a discarded value if `text` is not JSON or is nested too deep.
nlohmann::json ParseJson(std::string_view text);

}  // namespace pliant
