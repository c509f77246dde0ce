#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "operator/api/pod.h"
#include "operator/controller/model/requested_nodes.h"
#include "operator/controller/rounds/queue_status.h"

namespace pliant::controller {

struct PlaceholderChanges {
  struct New {
    const RequestedNodes* nodes = nullptr;  // points into what was wanted
    int number = 0;
    bool operator==(const New&) const = default;
  };
  struct Gone {
    std::string pod;
    std::string uid;
    bool operator==(const Gone&) const = default;
  };
  std::vector<New> create;
  std::vector<Gone> remove;                 // before others are created
  std::optional<api::WallTime> look_again;  // when time alone changes this
  bool operator==(const PlaceholderChanges&) const = default;
};

// The changes by which there are as many placeholders as are wanted. Those that stand in the way of
// learners are removed: learners preempt no pods. `present`: all placeholders, by name.
PlaceholderChanges ChangePlaceholders(std::span<const RequestedNodes> wanted,
                                      std::span<const std::shared_ptr<const api::Pod>> present,
                                      const PlannedCluster& cluster);

}  // namespace pliant::controller
