#include "operator/kube/transports.h"

#include "operator/kube/cpprest_transport.h"
#include "operator/kube/libcurl_transport.h"

namespace pliant::kube {

Result<std::unique_ptr<HttpTransport>> MakeTransport(TransportKind kind, const Config& config) {
  switch (kind) {
    case TransportKind::kCpprest:
      return CpprestTransport::Make(config);
    case TransportKind::kLibcurl:
      return LibcurlTransport::Make(config);
  }
  return Invalid("no such transport");
}

TransportMaker TransportsToMany(TransportKind kind) {
  if (kind == TransportKind::kLibcurl) {
    return [shared = std::make_shared<LibcurlTransports>()](const Config& config) {
      return shared->Make(config);
    };
  }
  // All transports of this library share threads. It accepts no IPv6 literals, but a pod's address
  // may be one: libcurl serves those.
  return [kind, literals = std::make_shared<LibcurlTransports>()](
             const Config& config) -> Result<std::unique_ptr<HttpTransport>> {
    if (config.server.contains("://[")) return literals->Make(config);
    return MakeTransport(kind, config);
  };
}

}  // namespace pliant::kube
