#include "operator/controller/model/reporting.h"

#include <algorithm>
#include <chrono>

namespace pliant::controller {

std::optional<api::WallTime> WhenWriteIsLeft(api::WallTime now, WriteBudget& budget) {
  constexpr double kMax = WriteBudget{}.writes;
  constexpr double kPerSecond = 0.5;
  if (budget.at && now > *budget.at) {
    const double passed = std::chrono::duration<double>(now - *budget.at).count();
    budget.writes = std::min(kMax, budget.writes + passed * kPerSecond);
  }
  budget.at = now;
  if (budget.writes >= 1) return std::nullopt;
  const auto wait = std::chrono::duration<double>((1 - budget.writes) / kPerSecond);
  return now + std::chrono::ceil<std::chrono::seconds>(wait);
}

}  // namespace pliant::controller
