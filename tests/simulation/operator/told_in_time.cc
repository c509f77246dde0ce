#include "tests/simulation/operator/told_in_time.h"

#include <chrono>
#include <utility>

#include "base/format.h"

namespace pliant::operator_sim {
namespace {

constexpr std::chrono::seconds kLimit{2};

}  // namespace

void ToldInTime::Look(const planner::Plan* plan) {
  const std::map<std::string, TimePoint> before = std::exchange(untold_since_, {});
  if (plan == nullptr) return;
  const TimePoint now = loop_.Now();
  for (const planner::Decision& decision : plan->decisions) {
    for (const std::string& learner : decision.drop) {
      if (!trainings_.AwaitsWordToLeave(decision.job.uid, learner)) continue;
      const std::string key = decision.job.uid + "/" + learner;
      const auto known = before.find(key);
      const TimePoint since = known == before.end() ? now : known->second;
      untold_since_.emplace(key, since);
      // Reported once: from then on it counts from the future.
      if (now - since > kLimit) {
        violated_(Format("{} of {} is not told to leave", learner, ToString(decision.job)));
        untold_since_[key] = TimePoint::max();
      }
    }
  }
}

}  // namespace pliant::operator_sim
