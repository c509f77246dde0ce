#pragma once

#include <memory>
#include <set>
#include <string>

#include "trainer/membership/plan.h"

namespace pliant {

// A job's figures for Prometheus. Everything that a progress says is taken from the newest one when
// somebody asks; only what it cannot say is counted.
class JobMetrics {
 public:
  explicit JobMetrics(const std::string& job);
  ~JobMetrics();

  void CountMessage(std::string_view name);  // taken from a learner
  void CountRefusedMessage();                // not understood
  void CountRefusedPlan();

  // The text of /metrics. `connections`: learners' connections that are open.
  std::string Serialize(const JobProgress& progress, std::size_t connections);

 private:
  struct Families;

  void Observe(const JobProgress& progress);

  std::unique_ptr<Families> families_;
  std::set<MembershipId> observed_;  // resizes that are in the histograms
};

}  // namespace pliant
