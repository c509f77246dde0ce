#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/metric_family.h"
#include "trainer/runtime/learner_stats.h"

namespace pliant {

// A learner's metrics for Prometheus (docs/metrics.md).
class LearnerMetrics {
 public:
  explicit LearnerMetrics(const std::string& job);  // "<namespace>/<name>"
  ~LearnerMetrics();

  // The text of /metrics.
  std::string Serialize(const LearnerStats& stats);
  std::vector<MetricFamily> families() const;

 private:
  struct Families;
  const std::unique_ptr<Families> families_;
};

}  // namespace pliant
