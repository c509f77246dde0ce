#pragma once

#include <optional>
#include <string>

namespace pliant {

// Returns nullopt if `text` is not base64 (RFC 4648, padded).
std::optional<std::string> FromBase64(const std::string& text);

}  // namespace pliant
