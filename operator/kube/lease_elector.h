#pragma once

#include <functional>
#include <memory>
#include <string>
#include <thread>

#include "base/event_loop.h"
#include "operator/kube/client.h"
#include "operator/kube/lease_policy.h"

namespace pliant::kube {

struct LeaseElectorOptions {
  NamespacedName lease;
  std::string identity;  // of this process: unique, and different after a restart
  LeaseTiming timing;
  // Both are called on the control thread, at most once. `transitions` orders the leaders and
  // serves as a fencing token.
  std::function<void(int transitions)> on_elected;
  // Leadership is lost: the program must exit at once. Not called after Release.
  std::function<void()> on_lost;
};

// Takes part in leader election, on its own thread. The lease alone is not a fence: MayWrite is
// checked before each write, and writes are conditional on the version that was read.
class LeaseElector {
 public:
  // Options of the elector's own client: no write guard, no rate limit, and deadlines that leave
  // time for several tries.
  static ClientOptions OptionsOfClient();

  // Starts at once. `client` and `control` outlive the elector.
  LeaseElector(KubeClient& client, EventLoop& control, LeaseElectorOptions options);
  // Does not release the lease: to other replicas it looks like a crash.
  ~LeaseElector();

  // Whether this process leads now. It compares with the clock, so that the answer is right even if
  // the process was paused and its elector has not run since. Any thread.
  bool MayWrite() const;

  // Stops taking part and, if this process led, clears the lease's holder, so that another replica
  // leads within its retry time. Blocks for a few seconds at most. MayWrite is false from the start
  // of this call.
  void Release();

  // The leader's identity as last seen; "" if there is none. Any thread.
  std::string Leader() const;

 private:
  class Impl;
  const std::unique_ptr<Impl> impl_;
  std::jthread thread_;  // last: joined before the rest is destroyed
};

}  // namespace pliant::kube
