#pragma once

#include <functional>

#include "base/event_loop.h"
#include "operator/controller/calls/executor.h"
#include "operator/kube/client.h"

namespace pliant::controller {

// The parts that requests for nodes use; all outlive them.
struct NodeRequestParts {
  EventLoop& loop;
  kube::KubeClient& client;
  Executor api_calls;
  std::function<void()> request_round;  // when the next step may be made
};

}  // namespace pliant::controller
