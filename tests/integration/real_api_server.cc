// The API server that $PLIANT_TEST_KUBECONFIG names, over the library that $PLIANT_TEST_TRANSPORT
// names: cpprest or libcurl.
#include <cstdlib>
#include <string_view>

#include "operator/kube/transports.h"
#include "tests/integration/api_server.h"

namespace pliant::kube {

Result<Config> ApiServerTest::ConfigOfServer() {
  const char* kubeconfig = std::getenv("PLIANT_TEST_KUBECONFIG");
  if (kubeconfig == nullptr) {
    return Fail(ErrorCode::kNotFound,
                "PLIANT_TEST_KUBECONFIG has to name the kubeconfig of a test API server; "
                "`tests/cluster/control-plane up --dir DIR` prints one");
  }
  return LoadKubeconfig(kubeconfig);
}

Result<std::unique_ptr<HttpTransport>> ApiServerTest::Connect(const Config& config) {
  const char* library = std::getenv("PLIANT_TEST_TRANSPORT");
  const bool libcurl = library != nullptr && std::string_view(library) == "libcurl";
  return MakeTransport(libcurl ? TransportKind::kLibcurl : TransportKind::kCpprest, config);
}

}  // namespace pliant::kube
