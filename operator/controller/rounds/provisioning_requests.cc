#include "operator/controller/rounds/provisioning_requests.h"

#include <algorithm>
#include <chrono>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/earliest.h"
#include "base/format.h"
#include "base/log.h"
#include "operator/controller/actions/idempotent_calls.h"

namespace pliant::controller {
namespace {

constexpr std::chrono::seconds kListEvery{30};  // while there are some
constexpr std::chrono::seconds kRetryAfter{60};

struct ProvisioningCalls {
  std::vector<ProvisioningChanges::Gone> remove;
  struct New {
    nlohmann::json pod_template;
    nlohmann::json request;
  };
  std::vector<New> create;
};

// Returns the first error. After one that does not concern its object alone, the other calls are
// left. A request never lacks its template.
kube::KubeStatus Carry(const ProvisioningCalls& calls, kube::KubeClient& client,
                       const std::string& ns) {
  for (const ProvisioningChanges::Gone& gone : calls.remove) {
    const kube::NamespacedName key{ns, gone.name};
    if (auto done = DeleteIfPresent(client, kProvisioningRequests, key, gone.uid); !done)
      return done;
    if (auto done = DeleteIfPresent(client, kube::kPodTemplates, key, ""); !done) return done;
  }
  kube::KubeStatus first;
  for (const ProvisioningCalls::New& add : calls.create) {
    auto done = CreateIfAbsent(client, kube::kPodTemplates, add.pod_template);
    if (done) done = CreateIfAbsent(client, kProvisioningRequests, add.request);
    if (done) continue;
    if (first) first = done;
    if (!ConcernsOneObject(done.error())) break;
  }
  return first;
}

kube::KubeResult<std::vector<ProvisioningState>> ListAll(kube::KubeClient& client,
                                                         const std::string& ns) {
  const auto page = client.List(kProvisioningRequests, ns,
                                {.label_selector = std::string(kLabelNodesFor), .limit = 0});
  if (!page) return std::unexpected(page.error());
  std::vector<ProvisioningState> states;
  for (const nlohmann::json& item : page->items) {
    if (auto state = DecodeProvisioningRequest(item)) states.push_back(*std::move(state));
  }
  return states;
}

}  // namespace

std::optional<api::WallTime> ProvisioningRequests::Reconcile(std::span<const RequestedNodes> wanted,
                                                             api::WallTime now) {
  if (is_under_way_) return std::nullopt;
  // The clock may have been set back.
  if (failed_at_) failed_at_ = std::min(*failed_at_, now);
  if (listed_at_) listed_at_ = std::min(*listed_at_, now);
  if (failed_at_ && now < *failed_at_ + kRetryAfter) return *failed_at_ + kRetryAfter;
  const bool is_needed = !wanted.empty() || !present_.empty();
  if (!listed_at_ || (is_needed && now >= *listed_at_ + kListEvery)) {
    List(now);
    return std::nullopt;
  }
  if (!is_needed) return std::nullopt;
  const ProvisioningChanges changes = ChangeProvisioningRequests(wanted, present_, now);
  if (!changes.create.empty() || !changes.remove.empty()) {
    Apply(changes, now);
    return std::nullopt;
  }
  std::optional<api::WallTime> again_at = *listed_at_ + kListEvery;
  KeepEarliest(changes.look_again, again_at);
  return again_at;
}

void ProvisioningRequests::List(api::WallTime now) {
  is_under_way_ = true;
  auto on_end = lifetime_.Guard([this, now](Listed listed) { OnListed(std::move(listed), now); });
  parts_.api_calls([&client = parts_.client, &loop = parts_.loop, ns = defaults_.ns,
                    on_end = std::move(on_end)] {
    loop.Post([on_end, listed = ListAll(client, ns)]() mutable { on_end(std::move(listed)); });
  });
}

void ProvisioningRequests::OnListed(Listed listed, api::WallTime now) {
  is_under_way_ = false;
  if (!listed) {
    OnFailure(listed.error(), now);
    return;
  }
  failed_at_.reset();
  listed_at_ = now;
  present_ = *std::move(listed);
  std::string over;
  for (const ProvisioningState& request : present_) {
    if (!request.over.empty())
      over += Format("{}{}: {}", over.empty() ? "" : "; ", request.name, request.over);
  }
  if (!over.empty() && over != last_error_) {
    log::Warning("cluster-autoscaler provides no nodes; the requests are repeated",
                 {{"why", over}});
  }
  last_error_ = over;
  parts_.request_round();
}

void ProvisioningRequests::Apply(const ProvisioningChanges& changes, api::WallTime now) {
  ProvisioningCalls calls{.remove = changes.remove};
  for (const RequestedNodes* nodes : changes.create) {
    calls.create.push_back(
        {ProvisioningTemplate(*nodes, defaults_), ProvisioningRequest(*nodes, defaults_)});
  }
  log::Info("changing ProvisioningRequests, for which cluster-autoscaler adds nodes",
            {{"created", calls.create.size()}, {"removed", calls.remove.size()}});
  is_under_way_ = true;
  listed_at_.reset();
  auto on_end = lifetime_.Guard([this, now](const kube::KubeStatus& done) {
    is_under_way_ = false;
    if (!done) OnFailure(done.error(), now);
    parts_.request_round();
  });
  parts_.api_calls([calls = std::move(calls), &client = parts_.client, &loop = parts_.loop,
                    ns = defaults_.ns, on_end = std::move(on_end)] {
    loop.Post([on_end, done = Carry(calls, client, ns)]() mutable { on_end(done); });
  });
}

void ProvisioningRequests::OnFailure(const kube::KubeError& error, api::WallTime now) {
  failed_at_ = now;
  const bool is_new = std::exchange(last_error_, error.message) != error.message;
  if (is_new) {
    log::Warning(error.code == ErrorCode::kNotFound
                     ? "the API server has no ProvisioningRequests of version v1, so no node is "
                       "added: install the definition of cluster-autoscaler 1.31 or newer, or set "
                       "nodeRequests to PlaceholderPods"
                     : "cannot change ProvisioningRequests, so no node is added; retrying",
                 {{"error", error.message}});
  }
  parts_.request_round();
}

}  // namespace pliant::controller
