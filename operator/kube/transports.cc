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

}  // namespace pliant::kube
