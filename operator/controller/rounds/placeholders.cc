#include "operator/controller/rounds/placeholders.h"

#include <algorithm>
#include <chrono>
#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

#include "base/earliest.h"
#include "base/log.h"
#include "operator/controller/actions/idempotent_calls.h"

namespace pliant::controller {
namespace {

constexpr std::size_t kMaxChangesAtOnce = 64;
constexpr std::chrono::seconds kRetryPodsAfter{30};

struct PlaceholderCalls {
  std::vector<PlaceholderChanges::Gone> remove;
  std::vector<nlohmann::json> create;
};

// Returns the first error. After one that does not concern its object alone, the other calls are
// left.
kube::KubeStatus Carry(const PlaceholderCalls& calls, kube::KubeClient& client,
                       const std::string& ns) {
  for (const PlaceholderChanges::Gone& gone : calls.remove) {
    const auto done = DeleteIfPresent(client, kube::kPods, {ns, gone.pod}, gone.uid);
    if (!done) return done;
  }
  kube::KubeStatus first;
  for (const nlohmann::json& pod : calls.create) {
    const auto done = CreateIfAbsent(client, kube::kPods, pod);
    if (done) continue;
    if (first) first = done;
    if (!ConcernsOneObject(done.error())) break;
  }
  return first;
}

}  // namespace

void Placeholders::See(const kube::Store<api::Pod>::Change& change) {
  if (change.key.ns != defaults_.ns) return;
  if (change.after != nullptr && IsPlaceholder(*change.after, defaults_.ns)) {
    pods_.insert_or_assign(change.key.name, change.after);
  } else {
    pods_.erase(change.key.name);
  }
}

std::optional<api::WallTime> Placeholders::Reconcile(std::span<const RequestedNodes> wanted,
                                                     const PlannedCluster& cluster,
                                                     api::WallTime now) {
  if (is_under_way_) return std::nullopt;
  if (wanted.empty() && pods_.empty()) return std::nullopt;
  std::vector<std::shared_ptr<const api::Pod>> present;
  for (const auto& [name, pod] : pods_) present.push_back(pod);
  PlaceholderChanges changes = ChangePlaceholders(wanted, present, cluster);
  std::optional<api::WallTime> again_at = changes.look_again;
  // Placeholders in the way of learners are removed at any time.
  if (failed_at_) failed_at_ = std::min(*failed_at_, now);  // the clock may have been set back
  if (failed_at_ && now < *failed_at_ + kRetryPodsAfter) {
    changes.create.clear();
    KeepEarliest(*failed_at_ + kRetryPodsAfter, again_at);
  }
  Apply(std::move(changes), now);
  return again_at;
}

void Placeholders::Apply(PlaceholderChanges changes, api::WallTime now) {
  PlaceholderCalls calls{.remove = std::move(changes.remove)};
  if (calls.remove.size() > kMaxChangesAtOnce) calls.remove.resize(kMaxChangesAtOnce);
  for (const PlaceholderChanges::New& add : changes.create) {
    if (calls.remove.size() + calls.create.size() >= kMaxChangesAtOnce) break;
    calls.create.push_back(PlaceholderPod(*add.nodes, add.number, defaults_));
  }
  if (calls.remove.empty() && calls.create.empty()) return;
  log::Info("changing placeholders, for which a node autoscaler adds nodes",
            {{"created", calls.create.size()}, {"removed", calls.remove.size()}});
  is_under_way_ = true;
  auto on_end = lifetime_.Guard([this, now](const kube::KubeStatus& done) {
    is_under_way_ = false;
    if (!done) failed_at_ = now;
    if (!done) {
      log::Warning("cannot change placeholders, so no node autoscaler adds nodes; retrying",
                   {{"error", done.error().message}});
    }
    parts_.request_round();
  });
  parts_.api_calls([calls = std::move(calls), &client = parts_.client, &loop = parts_.loop,
                    ns = defaults_.ns, on_end = std::move(on_end)] {
    loop.Post([on_end, done = Carry(calls, client, ns)]() mutable { on_end(done); });
  });
}

}  // namespace pliant::controller
