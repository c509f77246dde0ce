#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/lifetime.h"
#include "operator/controller/rounds/node_request_parts.h"
#include "operator/controller/rounds/provisioning_changes.h"

namespace pliant::controller {

inline constexpr kube::ResourceType kProvisioningRequests{
    "autoscaling.x-k8s.io", "v1", "provisioningrequests", "ProvisioningRequest"};

// Keeps the ProvisioningRequests that the last plan wants. Control thread.
class ProvisioningRequests {
 public:
  ProvisioningRequests(NodeRequestParts parts, PlaceholderDefaults defaults)
      : parts_(std::move(parts)), defaults_(std::move(defaults)) {}

  // Lists, creates or removes some. Returns when to call it again, even if nothing happens.
  std::optional<api::WallTime> Reconcile(std::span<const RequestedNodes> wanted, api::WallTime now);

 private:
  using Listed = kube::KubeResult<std::vector<ProvisioningState>>;

  void List(api::WallTime now);
  void OnListed(Listed listed, api::WallTime now);
  void Apply(const ProvisioningChanges& changes, api::WallTime now);
  void OnFailure(const kube::KubeError& error, api::WallTime now);

  const NodeRequestParts parts_;
  const PlaceholderDefaults defaults_;
  std::vector<ProvisioningState> present_;  // as they were listed last
  std::optional<api::WallTime> listed_at_;  // absent: they have changed since
  std::optional<api::WallTime> failed_at_;
  std::string last_error_;  // the last one that was logged
  bool is_under_way_ = false;
  const Lifetime lifetime_;
};

}  // namespace pliant::controller
