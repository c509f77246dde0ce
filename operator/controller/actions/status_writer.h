#pragma once

#include "operator/api/gpu_pool.h"
#include "operator/api/training_queue.h"
#include "operator/kube/client.h"

namespace pliant::controller {

// Writes the statuses of queues and pools. Any thread.
class StatusWriter {
 public:
  explicit StatusWriter(kube::KubeClient& client) : client_(client) {}  // outlives the writer

  // The object may have changed meanwhile, but must be the same one: its uid is checked.
  kube::KubeStatus Write(const api::ObjectMeta& queue,
                         const api::TrainingQueueStatus& status) const;
  kube::KubeStatus Write(const api::ObjectMeta& pool, const api::GpuPoolStatus& status) const;

 private:
  kube::KubeStatus Patch(const kube::ResourceType& type, const api::ObjectMeta& meta,
                         nlohmann::json status) const;

  kube::KubeClient& client_;
};

}  // namespace pliant::controller
