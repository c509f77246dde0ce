#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "operator/api/elastic_training_job.h"
#include "operator/api/pod.h"

namespace pliant::controller {

// GPU time that a job has had, and since when it waits.
struct ServiceMeter {
  double gpu_seconds = 0;  // attained until `until`
  std::optional<api::WallTime> until;
  std::int64_t gpus = 0;                       // in use since `until`
  std::optional<api::WallTime> waiting_since;  // for GPUs; nullopt: it does not wait
  bool operator==(const ServiceMeter&) const = default;
};

void ObserveService(const api::ElasticTrainingJob& job, const std::vector<api::Pod>& learners,
                    api::WallTime now, ServiceMeter& meter);

}  // namespace pliant::controller
