#include "operator/controller/model/reporting.h"

#include <algorithm>
#include <chrono>
#include <utility>

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

void ObserveReported(const Progress* progress, Reporting& reporting) {
  if (progress != nullptr && progress->total_steps &&
      progress->learners_asked != reporting.learners_asked_dropped) {
    reporting.learners_asked_dropped.reset();
  }
}

bool OnStatusWritten(const api::JobStatus& sent, const api::JobStatus* kept,
                     const LastReported& before, Reporting& reporting) {
  if (kept == nullptr) {
    // Nothing was reported: the next try must not treat it as old news.
    reporting.last = before;
    return false;
  }
  if (!sent.progress.learners_asked) return false;
  if (kept->progress.learners_asked) {
    reporting.learners_asked_dropped.reset();
    return false;
  }
  return std::exchange(reporting.learners_asked_dropped, sent.progress.learners_asked) !=
         sent.progress.learners_asked;
}

}  // namespace pliant::controller
