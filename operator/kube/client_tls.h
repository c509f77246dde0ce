#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>

#include <openssl/ssl.h>

#include "operator/kube/config.h"

namespace pliant::kube {

// What may be meant by a connection that the server closes without an answer.
inline constexpr std::string_view kClosedWithoutAnswer =
    " (the server closed the connection; over TLS 1.3 that is also how it refuses a client "
    "certificate, or the lack of one)";

// Gives OpenSSL contexts the trust and the identity of a Config: the configured certificate
// authority and nothing else, TLS 1.2 or newer, the client's certificate if there is one.
class ClientTls {
 public:
  explicit ClientTls(const Config& config) : config_(config) {}

  // Files are read anew each time, so a rotated certificate is used by the next connection.
  // `context` keeps a pointer to this object.
  Status Apply(SSL_CTX* context);

  // Changes with the certificate that a credential plugin gives: connections that were opened
  // before show another one. 0 while there is none.
  std::uint64_t identity_serial() const;

  // Why the last certificate of the server was refused; "" if it was not. The library's own error
  // does not say.
  std::string last_refusal() const;

 private:
  static int Verify(X509_STORE_CTX* chain, void* self);

  const Config config_;
  mutable std::mutex mutex_;
  std::string last_refusal_;  // guarded by mutex_
};

}  // namespace pliant::kube
