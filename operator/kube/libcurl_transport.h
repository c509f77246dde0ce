#pragma once

#include <memory>

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
  class Server;
  explicit LibcurlTransport(std::unique_ptr<Server> server);

  const std::unique_ptr<Server> server_;
};

}  // namespace pliant::kube
