#pragma once

#include <memory>
#include <mutex>

#include "operator/kube/config.h"
#include "operator/kube/http_transport.h"

namespace pliant::kube {

// HttpTransport over libcurl; its .cc file is the only one that names that library. HTTP/2 where
// the server supports it, so that all watches share a connection; IPv6; proxies. Trusts only the
// configured certificate authority. Certificate and key files are read for each connection.
class LibcurlTransport final : public HttpTransport {
 public:
  // kInvalid when the certificates or the key cannot be read or do not belong together.
  static Result<std::unique_ptr<LibcurlTransport>> Make(const Config& config);
  ~LibcurlTransport() override;

  Result<HttpResponse> Send(const HttpRequest& request, std::stop_token stop = {}) override;
  Result<HttpResponse> Stream(const HttpRequest& request, const LineSink& sink, Duration idle,
                              std::stop_token stop = {}) override;

 private:
  friend class LibcurlTransports;
  class Connections;
  class Server;
  static Result<std::unique_ptr<LibcurlTransport>> Over(std::shared_ptr<Connections> connections,
                                                        const Config& config);
  explicit LibcurlTransport(std::unique_ptr<Server> server);

  const std::unique_ptr<Server> server_;
};

// Makes transports to many servers that each get few requests. Consecutive ones with the same trust
// and identity share a thread and a connection cache; they use HTTP/1.1. Any thread.
class LibcurlTransports {
 public:
  LibcurlTransports();
  ~LibcurlTransports();

  // Returns the same errors as LibcurlTransport::Make.
  Result<std::unique_ptr<HttpTransport>> Make(const Config& config);

 private:
  std::mutex mutex_;
  Config common_;  // without the server; guarded by mutex_
  std::shared_ptr<LibcurlTransport::Connections> connections_;  // guarded by mutex_
};

}  // namespace pliant::kube
