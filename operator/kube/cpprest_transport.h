#pragma once

#include <memory>

#include "operator/kube/config.h"
#include "operator/kube/http_transport.h"

namespace pliant::kube {

// HttpTransport over cpprestsdk; its .cc file is the only one that names that library. Trusts only
// the configured certificate authority. Certificate and key files are read for each connection.
// HTTP/1.1; no IPv6 literals, no proxies.
class CpprestTransport final : public HttpTransport {
 public:
  // kInvalid when the certificates or the key cannot be read or do not belong together.
  static Result<std::unique_ptr<CpprestTransport>> Make(const Config& config);
  ~CpprestTransport() override;

  Result<HttpResponse> Send(const HttpRequest& request, std::stop_token stop = {}) override;
  Result<HttpResponse> Stream(const HttpRequest& request, const LineSink& sink, Duration idle,
                              std::stop_token stop = {}) override;

 private:
  struct Clients;
  explicit CpprestTransport(std::unique_ptr<Clients> clients);

  const std::unique_ptr<Clients> clients_;
};

}  // namespace pliant::kube
