#pragma once

#include "operator/controller/actions/action_runner.h"
#include "operator/kube/work_queue.h"
#include "operator/metrics/metrics.h"

// Metrics of the planning loop itself.
namespace pliant::controller {

metrics::ReconcileResult ReconcileResultOf(const BatchResult& result);

// `metrics` outlives the queue.
kube::WorkQueueObserver ObserverFor(metrics::Metrics& metrics);

}  // namespace pliant::controller
