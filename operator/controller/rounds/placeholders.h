#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "base/event_loop.h"
#include "base/lifetime.h"
#include "operator/controller/calls/executor.h"
#include "operator/controller/objects/placeholder_pod.h"
#include "operator/controller/rounds/placeholder_changes.h"
#include "operator/kube/client.h"
#include "operator/kube/store.h"

namespace pliant::controller {

struct PlaceholdersParts {
  EventLoop& loop;
  kube::KubeClient& client;
  Executor api_calls;
  std::function<void()> request_round;  // when the next changes may be made
};

// Keeps the placeholder pods that the last plan wants. Control thread.
class Placeholders {
 public:
  Placeholders(PlaceholdersParts parts, PlaceholderDefaults defaults)
      : parts_(std::move(parts)), defaults_(std::move(defaults)) {}

  // Whether it is a placeholder: then it takes no room from learners.
  bool Has(const api::Pod& pod) const { return IsPlaceholder(pod, defaults_.ns); }
  void See(const kube::Store<api::Pod>::Change& change);

  // Creates and removes some. Returns when to call it again, even if nothing happens.
  std::optional<api::WallTime> Reconcile(std::span<const RequestedNodes> wanted,
                                         const PlannedCluster& cluster, api::WallTime now);

 private:
  void Apply(PlaceholderChanges changes, api::WallTime now);

  const PlaceholdersParts parts_;
  const PlaceholderDefaults defaults_;
  std::map<std::string, std::shared_ptr<const api::Pod>> pods_;  // by name
  bool is_under_way_ = false;
  std::optional<api::WallTime> failed_at_;
  const Lifetime lifetime_;
};

}  // namespace pliant::controller
