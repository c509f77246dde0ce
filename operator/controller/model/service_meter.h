#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <vector>

#include "operator/api/elastic_training_job.h"
#include "operator/api/pod.h"

namespace pliant::controller {

// GPU time that a job has had, and since when it waits.
struct ServiceMeter {
  double gpu_seconds = 0;         // attained until `until`
  double recent_gpu_seconds = 0;  // the same, each second halved with every half-life since then
  std::optional<api::WallTime> until;
  std::int64_t gpus = 0;                       // in use since `until`
  std::optional<api::WallTime> waiting_since;  // for GPUs; nullopt: it does not wait
  bool operator==(const ServiceMeter&) const = default;
};

// `half_life`: that of the job's queue.
void ObserveService(const api::ElasticTrainingJob& job, const std::vector<api::Pod>& learners,
                    std::chrono::seconds half_life, api::WallTime now, ServiceMeter& meter);

}  // namespace pliant::controller
