#include "operator/controller/rounds/loop_metrics.h"

namespace pliant::controller {

metrics::ReconcileResult ReconcileResultOf(const BatchResult& result) {
  using enum metrics::ReconcileResult;
  if (!result.error) return kSuccess;
  return result.error->code == ErrorCode::kConflict ? kRequeue : kError;
}

kube::WorkQueueObserver ObserverFor(metrics::Metrics& metrics) {
  return {.on_add = [&metrics] { metrics.OnQueueAdd(); },
          .on_take = [&metrics](Duration waited) { metrics.OnQueueTake(waited); },
          .on_done = [&metrics](Duration worked) { metrics.OnQueueDone(worked); }};
}

}  // namespace pliant::controller
