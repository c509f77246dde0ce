#include "operator/controller/process/leadership.h"

#include <chrono>
#include <utility>

#include "base/log.h"
#include "operator/controller/process/key_store.h"

namespace pliant::controller {
namespace {

// The last writes of the previous leader may still be on their way to the stores.
constexpr std::chrono::milliseconds kSettleTime{500};

}  // namespace

Leadership::Leadership(LeadershipParts parts, LeadershipOptions options)
    : parts_(std::move(parts)), options_(std::move(options)), status_writer_(parts_.client) {
  const ClusterStores& stores = parts_.table.stores();
  stores.jobs.OnChange([this](const auto& change) {
    if (planning_) planning_->OnJobChange(change);
  });
  stores.pods.OnChange([this](const auto& change) {
    if (planning_) planning_->OnPodChange(change);
  });
  stores.nodes.OnChange([this](const auto& change) {
    if (planning_) planning_->OnNodeChange(change);
  });
  stores.services.OnChange([this](const auto& change) {
    if (planning_) planning_->OnServiceChange(change);
  });
  stores.quotas.OnChange([this](const auto& change) {
    if (planning_) planning_->OnQuotaChange(change);
  });
  const auto on_queue_book_change = [this](const auto&) {
    if (planning_) planning_->OnQueueBookChange();
  };
  stores.queues.OnChange(on_queue_book_change);
  stores.pools.OnChange(on_queue_book_change);
  stores.namespaces.OnChange(on_queue_book_change);
}

void Leadership::Begin(int transitions) {
  log::Info("leading", {{"transitions", transitions}});
  options_.planning.lease_transitions = transitions;
  parts_.loop.PostAfter(kSettleTime, [this] { GetKeys(); });
}

void Leadership::GetKeys() {
  parts_.api_calls([this] {
    auto keys = std::make_shared<const Result<MasterKeys>>(
        LoadOrMakeKeys(parts_.client, options_.ns, options_.planning.now()));
    parts_.loop.Post([this, keys] { OnKeys(*keys); });
  });
}

void Leadership::OnKeys(const Result<MasterKeys>& keys) {
  if (!keys) {
    if (keys.error().message != last_error_) {
      log::Error("the operator's keys cannot be loaded: no job is handled until they are",
                 {{"error", keys.error().message}});
      last_error_ = keys.error().message;
    }
    parts_.loop.PostAfter(backoff_.Next(0), [this] { GetKeys(); });
    return;
  }
  coordinators_ = std::make_unique<HttpCoordinatorClient>(*keys, options_.connect);
  runner_ = std::make_unique<ActionRunner>(parts_.client, options_.pods, *keys,
                                           [&loop = parts_.loop] { return loop.Now(); });
  planning_ = std::make_unique<PlanningLoop>(
      PlanningLoopParts{.loop = parts_.loop,
                        .table = parts_.table,
                        .runner = *runner_,
                        .status_writer = status_writer_,
                        .client = parts_.client,
                        .api_calls = parts_.api_calls,
                        .pod_making_calls = parts_.pod_making_calls,
                        .coordinator_calls = parts_.coordinator_calls,
                        .coordinators = *coordinators_,
                        .metrics = parts_.metrics,
                        .crash_notes = parts_.crash_notes},
      options_.planning);
}

}  // namespace pliant::controller
