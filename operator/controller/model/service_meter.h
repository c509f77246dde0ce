#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "operator/api/elastic_training_job.h"
#include "operator/api/pod.h"

namespace pliant::controller {

// What a job has been given of the cluster, and since when it waits.
struct ServiceMeter {
  double gpu_seconds = 0;  // attained until then:
  std::optional<api::WallTime> until;
  std::int64_t gpus = 0;                       // used since then
  std::optional<api::WallTime> waiting_since;  // for its first GPU; nothing: it does not
  bool operator==(const ServiceMeter&) const = default;
};

void ObserveService(const api::ElasticTrainingJob& job, const std::vector<api::Pod>& learners,
                    api::WallTime now, ServiceMeter& meter);

}  // namespace pliant::controller
