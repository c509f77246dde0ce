#pragma once

#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "base/lifetime.h"
#include "operator/controller/objects/placeholder_pod.h"
#include "operator/controller/rounds/node_request_parts.h"
#include "operator/controller/rounds/placeholder_changes.h"
#include "operator/kube/store.h"

namespace pliant::controller {

// Keeps the placeholder pods that the last plan wants. Control thread.
class Placeholders {
 public:
  Placeholders(NodeRequestParts parts, PlaceholderDefaults defaults)
      : parts_(std::move(parts)), defaults_(std::move(defaults)) {}

  void See(const kube::Store<api::Pod>::Change& change);

  // Creates and removes some. Returns when to call it again, even if nothing happens.
  std::optional<api::WallTime> Reconcile(std::span<const RequestedNodes> wanted,
                                         const PlannedCluster& cluster, api::WallTime now);

 private:
  void Apply(PlaceholderChanges changes, api::WallTime now);

  const NodeRequestParts parts_;
  const PlaceholderDefaults defaults_;
  std::map<std::string, std::shared_ptr<const api::Pod>> pods_;  // by name
  bool is_under_way_ = false;
  std::optional<api::WallTime> failed_at_;
  const Lifetime lifetime_;
};

}  // namespace pliant::controller
