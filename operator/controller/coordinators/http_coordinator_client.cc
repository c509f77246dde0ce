#include "operator/controller/coordinators/http_coordinator_client.h"

#include <chrono>
#include <utility>

#include "base/host_port.h"
#include "base/utf8.h"

namespace pliant::controller {
namespace {

// An answer takes milliseconds; a coordinator that is gone must not block a worker for long.
constexpr std::chrono::seconds kDeadline{3};
// A few hundred bytes per learner. A coordinator runs in its owner's namespace: it may send
// anything, but must not fill the operator's memory.
constexpr std::size_t kMaxAnswerBytes = std::size_t{1} << 20;

Error ErrorOf(const kube::HttpResponse& response) {
  const std::string message = "the coordinator answers " + std::to_string(response.status) + ": " +
                              CutAtCharacter(response.body, 256);
  switch (response.status) {
    case 401:
    case 403:
      return {ErrorCode::kDenied, message};
    case 409:
      return {ErrorCode::kConflict, message};
    case 400:
    case 404:
    case 413:
      return {ErrorCode::kInvalid, message};
    default:
      return {ErrorCode::kUnavailable, message};
  }
}

}  // namespace

Result<std::shared_ptr<kube::HttpTransport>> HttpCoordinatorClient::TransportTo(
    const CoordinatorAddress& address) {
  const std::lock_guard lock(mutex_);
  const auto found = links_.find(address.job_uid);
  const std::string server = "https://" + HostAndPort(address.host, address.port);
  if (found != links_.end() && found->second.server == server) return found->second.transport;
  ASSIGN_OR_RETURN(std::shared_ptr<kube::HttpTransport> transport,
                   connect_(server, keys_.ca_certificate));
  links_[address.job_uid] = {.server = server, .transport = transport};
  return transport;
}

Result<Progress> HttpCoordinatorClient::Call(const CoordinatorAddress& address,
                                             kube::HttpRequest request) {
  ASSIGN_OR_RETURN(const std::shared_ptr<kube::HttpTransport> transport, TransportTo(address));
  request.headers["Authorization"] =
      "Bearer " + DeriveJobKey(keys_.master_key, address.job_uid, KeyUse::kOperator);
  // The transport checks the certificate against this name rather than the address.
  request.headers["Host"] = CoordinatorHost(address.job_uid);
  request.deadline = kDeadline;
  request.max_body_bytes = kMaxAnswerBytes;
  ASSIGN_OR_RETURN(const kube::HttpResponse response, transport->Send(request));
  if (response.status != 200) return std::unexpected(ErrorOf(response));
  return DecodeProgress(response.body);
}

void HttpCoordinatorClient::Forget(const std::string& job_uid) {
  std::shared_ptr<kube::HttpTransport> last;  // destroyed after the lock is released
  const std::lock_guard lock(mutex_);
  if (auto link = links_.extract(job_uid)) last = std::move(link.mapped().transport);
}

Result<Progress> HttpCoordinatorClient::PutPlan(const CoordinatorAddress& address,
                                                const CoordinatorPlan& plan) {
  return Call(address, {.method = kube::HttpMethod::kPut,
                        .target = "/v1/plan",
                        .headers = {{"Content-Type", "application/json"}},
                        .body = EncodePlan(plan)});
}

Result<Progress> HttpCoordinatorClient::GetProgress(const CoordinatorAddress& address) {
  return Call(address, {.method = kube::HttpMethod::kGet, .target = "/v1/progress"});
}

HttpCoordinatorClient::Connect ConnectBy(kube::TransportMaker make) {
  return [make = std::move(make)](const std::string& server, const std::string& ca_certificate) {
    return make({.server = server,
                 .certificate_authority = {.text = ca_certificate, .file = ""},
                 .tls_1_3_only = true});
  };
}

}  // namespace pliant::controller
