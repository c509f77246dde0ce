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

// A job's figures for Prometheus (docs/metrics.md). Everything that a progress says is taken from
// the newest one when somebody asks; only what it cannot say is counted.
class JobMetrics {
 public:
  explicit JobMetrics(const std::string& job);  // "<namespace>/<name>"
  ~JobMetrics();

  void CountMessage(std::string_view name);  // taken from a learner
  void CountRefusedMessage();                // not understood
  void CountRefusedPlan();

  // The text of /metrics. `connections`: learners' connections that are open.
  std::string Serialize(const JobProgress& progress, std::size_t connections);
  std::vector<MetricFamily> families() const;

 private:
  struct Families;

  void Observe(const JobProgress& progress);
  void CountSamples(std::uint64_t samples);

  std::unique_ptr<Families> families_;
  std::set<MembershipId> observed_;  // resizes that are in the histograms
  std::uint64_t samples_seen_ = 0;   // as the newest progress told
};

}  // namespace pliant
