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

// Performs the actions of LeasePolicy, one request at a time. One thread, which it blocks.
class LeaseSteps {
 public:
  // `client` outlives this object; the lease expires by `clock`.
  LeaseSteps(KubeClient& client, NamespacedName lease, std::string identity, LeaseTiming timing,
             std::function<TimePoint()> clock = MonotonicNow);
  ~LeaseSteps();

  // Sends the next request, if there is one, and returns how long to wait before the next call.
  // `wall_time` is written to the lease for people to read; `random` in [0, 1).
  Duration Next(const std::string& wall_time, double random, const std::stop_token& stop = {});

  // Stops leading, and returns the record to write. `policy` no longer leads when this returns.
  std::optional<LeaseRecord> StopLeading(const std::string& wall_time);
  // Writes that record, if the lease is still ours.
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
