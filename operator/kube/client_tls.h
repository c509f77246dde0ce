#pragma once

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

// Why a server's certificate was refused, which the libraries' own errors do not say. Any thread.
class TlsRefusal {
 public:
  // "": it was not.
  void Set(std::string reason);
  std::string Get() const;

 private:
  mutable std::mutex mutex_;
  std::string reason_;  // guarded by mutex_
};

// Gives OpenSSL contexts the trust and the identity of a Config: the configured certificate
// authority and nothing else, TLS 1.2 or newer (or 1.3 only), the client's certificate if there is
// one.
class ClientTls {
 public:
  explicit ClientTls(const Config& config) : config_(config) {}

  // Files are read anew each time, so a rotated certificate is used by the next connection.
  // `refusal` is told how each handshake went, and outlives the last one of `context`.
  // `server_name`: whom the server's certificate has to be for; empty: the library checks it.
  Status Apply(SSL_CTX* context, const std::string& server_name, TlsRefusal& refusal) const;

 private:
  const Config config_;
};

}  // namespace pliant::kube
