#pragma once

#include <string>

namespace pliant::controller {

// A message for the owner of an object, to be recorded as an event of Kubernetes.
struct ObjectEvent {
  bool warning = false;
  std::string reason;  // CamelCase, of a fixed set
  std::string note;
  bool operator==(const ObjectEvent&) const = default;
};

}  // namespace pliant::controller
