// The API server that $PLIANT_TEST_KUBECONFIG names.
#include <cstdlib>

#include "operator/kube/cpprest_transport.h"
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
  return CpprestTransport::Make(config);
}

}  // namespace pliant::kube
