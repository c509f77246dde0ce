#include "simulator/plan_times.h"

#include <ctime>
#include <optional>

#include "base/format.h"
#include "operator/planner/fit_memory.h"
#include "simulator/report/distribution.h"
#include "simulator/report/markup.h"

namespace pliant::simulator {

planner::Plan PlanTimes::MakePlan(const planner::ClusterSnapshot& snapshot,
                                  const planner::Policy& policy, planner::FitMemory& memory) {
  const std::clock_t begin = std::clock();
  planner::Plan plan = planner::MakePlan(snapshot, policy, memory);
  milliseconds_.push_back(1000.0 * static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC);
  return plan;
}

std::string PlanTimes::Sentence() const {
  const std::optional<Distribution> times = DistributionOf(milliseconds_);
  if (!times) return "";
  return Format("{} plans, p50 {} ms, p99 {} ms of processor time", times->count,
                Fixed(times->p50, 2), Fixed(times->p99, 2));
}

}  // namespace pliant::simulator
