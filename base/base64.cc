#include "base/base64.h"

#include <cstddef>

#include <openssl/evp.h>

namespace pliant {

std::optional<std::string> FromBase64(const std::string& text) {
  std::string bytes(text.size(), '\0');
  const int count = EVP_DecodeBlock(reinterpret_cast<unsigned char*>(bytes.data()),
                                    reinterpret_cast<const unsigned char*>(text.data()),
                                    static_cast<int>(text.size()));
  if (count < 0) return std::nullopt;
  // EVP_DecodeBlock counts the padding as bytes.
  const std::size_t padding = text.ends_with("==") ? 2 : text.ends_with("=") ? 1 : 0;
  bytes.resize(static_cast<std::size_t>(count) - padding);
  return bytes;
}

}  // namespace pliant
