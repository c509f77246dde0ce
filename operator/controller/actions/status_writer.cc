#include "operator/controller/actions/status_writer.h"

#include <nlohmann/json.hpp>
#include <utility>

#include "operator/controller/actions/action_runner.h"

namespace pliant::controller {

kube::KubeStatus StatusWriter::Write(const api::ObjectMeta& queue,
                                     const api::TrainingQueueStatus& status) const {
  return Patch(kTrainingQueues, queue, api::EncodeStatus(status));
}

kube::KubeStatus StatusWriter::Write(const api::ObjectMeta& pool,
                                     const api::GpuPoolStatus& status) const {
  return Patch(kGpuPools, pool, api::EncodeStatus(status));
}

kube::KubeStatus StatusWriter::Patch(const kube::ResourceType& type, const api::ObjectMeta& meta,
                                     nlohmann::json status) const {
  const nlohmann::json patch = {{"metadata", {{"uid", meta.uid}}}, {"status", std::move(status)}};
  const auto written = client_.Patch(type, {"", meta.name}, patch, {.subresource = "status"});
  if (!written) return std::unexpected(written.error());
  return {};
}

}  // namespace pliant::controller
