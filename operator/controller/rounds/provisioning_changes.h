#pragma once

#include <chrono>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "operator/controller/objects/provisioning_request.h"

namespace pliant::controller {

struct ProvisioningChanges {
  struct Gone {
    std::string name;
    std::string uid;
    bool operator==(const Gone&) const = default;
  };
  std::vector<const RequestedNodes*> create;  // point into what was wanted
  std::vector<Gone> remove;                   // before others are created
  std::optional<api::WallTime> look_again;    // when time alone changes this
  bool operator==(const ProvisioningChanges&) const = default;
};

// An autoscaler works on a request for a while. So one that no longer fits is replaced only after
// `settles`, and one that has failed is repeated after `retries`.
struct ProvisioningPace {
  std::chrono::seconds settles{60};
  std::chrono::seconds retries{120};
};

// The changes by which there is one request for each that is wanted. `present`: all that there are.
ProvisioningChanges ChangeProvisioningRequests(std::span<const RequestedNodes> wanted,
                                               std::span<const ProvisioningState> present,
                                               api::WallTime now,
                                               const ProvisioningPace& pace = {});

}  // namespace pliant::controller
