#pragma once

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>

#include "operator/controller/coordinators/coordinator_client.h"
#include "operator/controller/objects/credentials.h"
#include "operator/kube/transports.h"

namespace pliant::controller {

// Calls coordinators over TLS. In the handshake each proves that it belongs to the intended job:
// its certificate is signed by the operator's own authority and is for CoordinatorHost, so that
// neither DNS nor the address matters. Nothing is sent before, least of all the job's token. Any
// thread.
class HttpCoordinatorClient final : public CoordinatorClient {
 public:
  // Connects to a server such as "https://10.0.0.7:8443", trusting `ca_certificate` (PEM) alone.
  using Connect = std::function<Result<std::unique_ptr<kube::HttpTransport>>(
      const std::string& server, const std::string& ca_certificate)>;

  HttpCoordinatorClient(MasterKeys keys, Connect connect)
      : keys_(std::move(keys)), connect_(std::move(connect)) {}

  Result<Progress> PutPlan(const CoordinatorAddress& address, const CoordinatorPlan& plan) override;
  Result<Progress> GetProgress(const CoordinatorAddress& address) override;
  void Forget(const std::string& job_uid) override;

 private:
  Result<std::shared_ptr<kube::HttpTransport>> TransportTo(const CoordinatorAddress& address);
  Result<Progress> Call(const CoordinatorAddress& address, kube::HttpRequest request);

  const MasterKeys keys_;
  const Connect connect_;
  std::mutex mutex_;
  // By job uid. A job has one coordinator at a time, so that old connections end with it. Guarded
  // by mutex_.
  struct Link {
    std::string server;
    std::shared_ptr<kube::HttpTransport> transport;
  };
  std::map<std::string, Link> links_;
};

// Connects with `make`, with TLS 1.3 only: both ends are ours.
HttpCoordinatorClient::Connect ConnectBy(kube::TransportMaker make);

}  // namespace pliant::controller
