#include "base/secret.h"

#include <openssl/crypto.h>

namespace pliant {

bool ConstantTimeEquals(std::string_view offered, std::string_view secret) {
  if (secret.empty() || offered.size() != secret.size()) return false;
  return CRYPTO_memcmp(offered.data(), secret.data(), secret.size()) == 0;
}

}  // namespace pliant
