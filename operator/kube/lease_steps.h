#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>

#include "operator/kube/client.h"
#include "operator/kube/lease_policy.h"

namespace pliant::kube {

// Does what the lease's policy says, one request at a time. One thread, which it blocks.
class LeaseSteps {
 public:
  // `client` outlives the steps; `clock` tells the time by which the lease runs out.
  LeaseSteps(KubeClient& client, NamespacedName lease, std::string identity, LeaseTiming timing,
             std::function<TimePoint()> clock = MonotonicNow);
  ~LeaseSteps();

  // The next request, or none. How long to wait before the one after it. `wall_time` is written to
  // the lease for people to read; `random` in [0, 1).
  Duration Next(const std::string& wall_time, double random, const std::stop_token& stop = {});

  // Stops leading: `policy` leads no more when it returns what is to be written.
  std::optional<LeaseRecord> StopLeading(const std::string& wall_time);
  // Writes it, if the lease is still ours.
  void WriteReleased(const LeaseRecord& released);

  const LeasePolicy& policy() const { return policy_; }

 private:
  void Read(const std::stop_token& stop);
  bool Create(const LeaseRecord& record, const std::stop_token& stop);
  bool Replace(const LeaseRecord& record, const std::stop_token& stop);
  bool Keep(KubeResult<nlohmann::json> written);
  void Failed(std::string_view what, const KubeError& error);
  void Healthy();

  KubeClient& client_;
  const NamespacedName name_;
  const std::string identity_;
  const std::function<TimePoint()> clock_;
  LeasePolicy policy_;
  std::unique_ptr<nlohmann::json> lease_;  // as last read or written
  bool failing_ = false;
};

}  // namespace pliant::kube
