#include "base/json.h"

#include <cstddef>
#include <nlohmann/json.hpp>

namespace pliant {

// In text that is not JSON, the level is right up to the place where a parser stops; the rest does
// not matter.
bool IsNestedTooDeep(std::string_view text) {
  int level = 0;
  bool in_string = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (c == '"') {
      in_string = !in_string;
    } else if (in_string) {
      if (c == '\\') ++i;
    } else if (c == '{' || c == '[') {
      if (++level > kMaxJsonLevels) return true;
    } else if (c == '}' || c == ']') {
      --level;
    }
  }
  return false;
}

nlohmann::json ParseJson(std::string_view text) {
  if (IsNestedTooDeep(text)) return nlohmann::json(nlohmann::json::value_t::discarded);
  return nlohmann::json::parse(text, /*cb=*/nullptr, /*allow_exceptions=*/false);
}

}  // namespace pliant
