#pragma once

#include <cstdint>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/metric_family.h"
#include "trainer/membership/plan.h"

namespace pliant {

// A job's metrics for Prometheus (docs/metrics.md). Values that a progress contains come from the
// newest one at each scrape; only the others are counted here.
class JobMetrics {
 public:
  explicit JobMetrics(const std::string& job);  // "<namespace>/<name>"
  ~JobMetrics();

  void CountMessage(std::string_view name);  // accepted from a learner
  void CountRefusedMessage();                // could not be decoded
  void CountRefusedPlan();

  // The text of /metrics. `connections`: number of open connections of learners.
  std::string Serialize(const JobProgress& progress, std::size_t connections);
  std::vector<MetricFamily> families() const;

 private:
  struct Families;

  void Observe(const JobProgress& progress);
  void CountSamples(std::uint64_t samples);

  std::unique_ptr<Families> families_;
  std::set<MembershipId> observed_;  // resizes that are in the histograms
  std::uint64_t samples_seen_ = 0;   // in the newest progress
};

}  // namespace pliant
