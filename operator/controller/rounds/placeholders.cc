#include "operator/controller/rounds/placeholders.h"

#include <chrono>
#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

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

// Returns the first error, after which the other calls are left.
kube::KubeStatus Carry(const PlaceholderCalls& calls, kube::KubeClient& client,
                       const std::string& ns) {
  for (const PlaceholderChanges::Gone& gone : calls.remove) {
    const auto done = DeleteIfPresent(client, kube::kPods, {ns, gone.pod}, gone.uid);
    if (!done) return done;
  }
  for (const nlohmann::json& pod : calls.create) {
    if (const auto done = CreateIfAbsent(client, kube::kPods, pod); !done) return done;
  }
  return {};
}

}  // namespace

void Placeholders::See(const kube::Store<api::Pod>::Change& change) {
  if (change.key.ns != defaults_.ns) return;
  if (change.after != nullptr && Has(*change.after)) {
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
  if (failed_at_ && now < *failed_at_ + kRetryPodsAfter) return *failed_at_ + kRetryPodsAfter;
  std::vector<std::shared_ptr<const api::Pod>> present;
  for (const auto& [name, pod] : pods_) present.push_back(pod);
  Apply(ChangePlaceholders(wanted, present, cluster), now);
  return std::nullopt;
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
    failed_at_ = done ? std::nullopt : std::optional(now);
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
