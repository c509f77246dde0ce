#pragma once

#include <memory>
#include <mutex>

#include "operator/kube/config.h"
#include "operator/kube/http_transport.h"

namespace pliant::kube {

// HttpTransport over libcurl; its .cc file is the only one that names that library. HTTP/2 where
// the server speaks it, so that all watches share a connection; IPv6; proxies. Trusts the
// configured certificate authority alone. Certificates and keys that lie in files are read anew for
// each connection.
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

// Makes transports to many servers that each have few requests. Those made after one another with
// the same trust and identity share a thread, and what is kept of connections; they speak HTTP/1.1.
// Any thread.
class LibcurlTransports {
 public:
  LibcurlTransports();
  ~LibcurlTransports();

  // As LibcurlTransport::Make does.
  Result<std::unique_ptr<HttpTransport>> Make(const Config& config);

 private:
  std::mutex mutex_;
  Config common_;  // except for the server; guarded by mutex_
  std::shared_ptr<LibcurlTransport::Connections> connections_;  // guarded by mutex_
};

}  // namespace pliant::kube
