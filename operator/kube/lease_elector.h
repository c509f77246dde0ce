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
  std::string identity;  // of this process: unlike any other's, also after a restart
  LeaseTiming timing;
  // On the control thread, once each. `transitions` orders the leaders: a fence for those who
  // compare it.
  std::function<void(int transitions)> on_elected;
  // Leadership is lost: the program has to end at once. Not called after Release.
  std::function<void()> on_lost;
};

// Takes part in the election of one leader, on a thread of its own. The lease is no fence: writes
// are asked of MayWrite one by one, and are conditional on what the writer has read.
class LeaseElector {
 public:
  // For a client of its own: without write guard and rate limit, and with deadlines that leave time
  // for several tries.
  static ClientOptions OptionsOfClient();

  // Begins at once. `client` and `control` outlive the elector.
  LeaseElector(KubeClient& client, EventLoop& control, LeaseElectorOptions options);
  // Does not release: a crash looks the same.
  ~LeaseElector();

  // Whether this process leads at this instant. By the clock, so that a process that was stopped
  // for a while knows it before its elector has run again. Any thread.
  bool MayWrite() const;

  // Stops taking part and, if this process led, empties the lease, so that another replica leads
  // within its retry time. Blocks for a few seconds at most. MayWrite is false from its beginning.
  void Release();

  // Who leads as far as this process knows; "" if nobody. Any thread.
  std::string Leader() const;

 private:
  class Impl;
  const std::unique_ptr<Impl> impl_;
  std::jthread thread_;  // last: joined before the rest is destroyed
};

}  // namespace pliant::kube
