#include "trainer/data/noise_window.h"

#include <algorithm>
#include <cmath>

namespace pliant {
namespace {

constexpr std::uint64_t kMeasureEverySteps = 16;
// The weight of a measured step falls to 1/e in this many later ones (how exact that is:
// docs/decisions/noise-comes-from-the-shards.md).
constexpr double kWindowSteps = 200;
constexpr double kKept = 1 - 1 / kWindowSteps;
constexpr double kFewestSteps = 9.5;  // the weight of ten

}  // namespace

bool IsMeasured(const TickPlan& plan) {
  return plan.kind == TickKind::kTrain && plan.step % kMeasureEverySteps == 0;
}

void ShardSpread::Add(std::uint64_t samples, double square) {
  if (samples == 0) return;
  sum += square / static_cast<double>(samples);
  ++shards;
}

void NoiseWindow::Add(const ShardSpread& spread, std::uint64_t samples, double mean_square) {
  if (spread.shards < 2) return;
  const auto batch = static_cast<double>(samples);
  const double step_trace = (spread.sum - batch * mean_square) / (spread.shards - 1);
  const double step_square = mean_square - step_trace / batch;
  trace = trace * kKept + step_trace;
  square = square * kKept + step_square;
  steps = steps * kKept + 1;
  if (!valid()) *this = {};
}

bool NoiseWindow::filled() const { return steps >= kFewestSteps; }

std::optional<double> NoiseWindow::scale() const {
  if (!filled() || square <= 0) return std::nullopt;
  const double scale = std::max(trace, 0.0) / square;
  return std::isfinite(scale) ? std::optional(scale) : std::nullopt;
}

bool NoiseWindow::valid() const {
  return std::isfinite(trace) && std::isfinite(square) && steps >= 0 && steps <= kWindowSteps;
}

}  // namespace pliant
