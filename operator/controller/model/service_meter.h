#pragma once

#include <cstdint>
#include <optional>

#include "operator/api/time.h"

namespace pliant::controller {

struct JobView;

// What a job has been given of the cluster, and since when it waits.
struct ServiceMeter {
  double gpu_seconds = 0;  // attained until then:
  std::optional<api::WallTime> until;
  std::int64_t gpus = 0;                       // used since then
  std::optional<api::WallTime> waiting_since;  // for its first GPU; nothing: it does not
  bool operator==(const ServiceMeter&) const = default;
};

void ObserveService(const JobView& view, api::WallTime now, ServiceMeter& meter);

}  // namespace pliant::controller
