#include "simulator/report/sizes_plot.h"

#include <algorithm>
#include <bit>
#include <vector>

#include "base/format.h"
#include "simulator/report/gpu_time.h"
#include "simulator/report/markup.h"
#include "simulator/report/svg.h"

namespace pliant::simulator {
namespace {

constexpr int kAlone = 4;  // sizes up to this have a bar of their own

// 0 to 3 for sizes 1 to 4, 4 for 5-8, 5 for 9-16.
std::size_t BarOf(int gpus) {
  const auto size = static_cast<unsigned>(gpus);
  return gpus <= kAlone ? size - 1 : static_cast<std::size_t>(std::bit_width(size - 1)) + 1;
}

std::string LabelOf(std::size_t bar) {
  if (bar < kAlone) return Format("{}", bar + 1);
  const std::size_t last = std::size_t{1} << (bar - 1);
  return Format("{}-{}", last / 2 + 1, last);
}

std::vector<double> HoursOf(const PolicyReport& policy) {
  std::vector<double> hours;
  for (const MeasuredRun& run : policy.runs) {
    for (const auto& [gpus, seconds] : GpuSecondsBySize(run.record)) {
      hours.resize(std::max(hours.size(), BarOf(gpus) + 1));
      hours[BarOf(gpus)] += seconds / 3600;
    }
  }
  return hours;
}

}  // namespace

std::string SizesPlot(const Report& report, std::size_t policy) {
  std::size_t bars = 0;
  double max = 0;
  for (const PolicyReport& each : report.policies) {
    const std::vector<double> hours = HoursOf(each);
    bars = std::max(bars, hours.size());
    if (!hours.empty()) max = std::max(max, std::ranges::max(hours));
  }
  if (max <= 0) return "<p>No job held GPUs.</p>\n";
  std::vector<double> hours = HoursOf(report.policies[policy]);
  hours.resize(bars);
  const double slot = kPlotWidth / static_cast<double>(bars);
  std::vector<Tick> ticks;
  std::string boxes;
  for (std::size_t bar = 0; bar < bars; ++bar) {
    const auto at = static_cast<double>(bar);
    ticks.push_back({.part = (at + 0.5) / static_cast<double>(bars), .label = LabelOf(bar)});
    const double height = hours[bar] / max * kPlotHeight;
    boxes += Format(
        "<rect x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\" fill=\"{}\">"
        "<title>{} GPUs: {} GPU h</title></rect>\n",
        Fixed(kPlotLeft + (at + 0.15) * slot, 1), Fixed(kPlotTop + kPlotHeight - height, 1),
        Fixed(0.7 * slot, 1), Fixed(height, 1), LineColour(0), LabelOf(bar), Fixed(hours[bar], 1));
  }
  return BeginPlot(Format("GPU hours of policy {} by the number of GPUs of the job",
                          ShownName(report.policies[policy].policy, kMaxLineBytes))) +
         AxisX(ticks, "GPUs of the job") + AxisY(NumberTicks(max, 6), "GPU hours") + boxes +
         EndPlot();
}

}  // namespace pliant::simulator
