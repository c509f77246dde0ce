#include "operator/controller/model/resize_meter.h"

#include <algorithm>
#include <chrono>
#include <limits>
#include <ranges>

#include "operator/controller/model/job_view.h"

namespace pliant::controller {

void ObserveResizes(const JobView& view, bool first_look, WallTime now, ResizeMeter& meter) {
  const auto& since = view.soft_state.clocks.starting_since;
  std::erase_if(meter.starting, [&](const std::string& name) { return !since.contains(name); });
  const Progress* const progress = view.coordinator.progress.get();
  for (const auto& [name, begin] : since) {
    const bool is_member = progress != nullptr && std::ranges::contains(progress->members, name);
    // Later it may also be that it has lost its membership, or its coordinator.
    if (begin == now && !first_look) meter.starting.insert(name);
    if (is_member && meter.starting.erase(name) > 0) {
      const double seconds = std::clamp(std::chrono::duration<double>(now - begin).count(), 0.0,
                                        speed::kHorizonSeconds);
      meter.start_seconds = meter.start_seconds ? (*meter.start_seconds + seconds) / 2 : seconds;
    }
  }
}

int HoldPercentOf(const JobView& view, std::optional<std::int64_t> remaining_seconds) {
  const Progress* const progress = view.coordinator.progress.get();
  const std::optional<double> start = view.soft_state.resizes.start_seconds;
  if (progress == nullptr || !start) return 0;
  speed::ResizeCost cost{.start_seconds = *start};
  for (const ReportedResize& resize : progress->resizes | std::views::reverse) {
    if (!resize.pause_seconds) continue;
    cost.pause_seconds = *resize.pause_seconds;
    break;
  }
  const double remaining = remaining_seconds ? static_cast<double>(*remaining_seconds)
                                             : std::numeric_limits<double>::infinity();
  return speed::HoldPercent(cost, static_cast<int>(progress->members.size()), remaining);
}

}  // namespace pliant::controller
