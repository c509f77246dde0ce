#pragma once

#include <memory>
#include <mutex>
#include <string>
#include <string_view>

#include <openssl/ssl.h>

#include "operator/kube/config.h"

namespace pliant::kube {

// Appended to the error when the server closes a connection without an answer.
inline constexpr std::string_view kClosedWithoutAnswer =
    " (the server closed the connection; over TLS 1.3 that is also how it refuses a client "
    "certificate, or the lack of one)";

// Why a server's certificate was rejected; the HTTP libraries' own errors do not say it. Any
// thread.
class TlsRefusal {
 public:
  // "": it was not rejected.
  void Set(std::string reason);
  std::string Get() const;

 private:
  mutable std::mutex mutex_;
  std::string reason_;  // guarded by mutex_
};

// Configures OpenSSL contexts from a Config: trusts only the configured certificate authority, TLS
// 1.2 or newer (or 1.3 only), and the client's certificate if there is one.
class ClientTls {
 public:
  explicit ClientTls(const Config& config) : config_(config) {}

  // Files are read each time, so that the next connection uses a rotated certificate. `refusal`
  // receives the result of each handshake and outlives the last one of `context`. `server_name`:
  // the name that the server's certificate must be for; empty: the library checks it.
  Status Apply(SSL_CTX* context, const std::string& server_name, TlsRefusal& refusal) const;

 private:
  const Config config_;
};

}  // namespace pliant::kube
