#include "simulator/report/cdf_plot.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <string_view>
#include <vector>

#include "base/format.h"
#include "simulator/report/markup.h"
#include "simulator/report/svg.h"

namespace pliant::simulator {
namespace {

struct Curve {
  std::vector<double> seconds;  // rising
  std::size_t jobs = 0;         // that did not complete included
};

Curve CurveOf(const PolicyReport& policy) {
  Curve curve;
  for (const MeasuredRun& run : policy.runs) {
    curve.jobs += run.jobs.size();
    for (const JobFigures& job : run.jobs) {
      if (job.completion_seconds) curve.seconds.push_back(*job.completion_seconds);
    }
  }
  std::ranges::sort(curve.seconds);
  return curve;
}

int PixelOf(const LogSeconds& axis, double seconds) {
  return kPlotLeft + static_cast<int>(std::lround(axis.PartOf(seconds) * kPlotWidth));
}

std::string PathOf(const Curve& curve, const LogSeconds& axis) {
  std::string path = Format("M{} {}", kPlotLeft, kPlotTop + kPlotHeight);
  for (std::size_t at = 0; at < curve.seconds.size(); ++at) {
    const int x = PixelOf(axis, curve.seconds[at]);
    if (at + 1 < curve.seconds.size() && PixelOf(axis, curve.seconds[at + 1]) == x) continue;
    const double part = static_cast<double>(at + 1) / static_cast<double>(curve.jobs);
    path += Format("H{}V{}", x, Fixed(kPlotTop + (1 - part) * kPlotHeight, 1));
  }
  return path + Format("H{}", kPlotLeft + kPlotWidth);
}

std::vector<std::string> NamesOf(const Report& report) {
  std::vector<std::string> names;
  for (const PolicyReport& policy : report.policies) names.push_back(policy.policy);
  return names;
}

// Axes and curves; empty if no job completed.
std::string Drawn(const Report& report) {
  std::vector<Curve> curves;
  std::vector<double> ends;
  for (const PolicyReport& policy : report.policies) {
    const Curve& curve = curves.emplace_back(CurveOf(policy));
    if (curve.seconds.empty()) continue;
    ends.push_back(curve.seconds.front());
    ends.push_back(curve.seconds.back());
  }
  if (ends.empty()) return "";
  const LogSeconds axis(std::ranges::min(ends), std::ranges::max(ends));
  std::string text = AxisX(axis.Ticks(), "completion time (logarithmic)");
  text += AxisY(NumberTicks(100, 5), "jobs completed (%)");
  for (std::size_t at = 0; at < curves.size(); ++at) {
    if (curves[at].seconds.empty()) continue;
    text += Format(
        "<path class=\"line\" stroke=\"{}\" stroke-dasharray=\"{}\" d=\"{}\">"
        "<title>{}</title></path>\n",
        LineColour(at), LineDash(at), PathOf(curves[at], axis),
        EscapedName(report.policies[at].policy));
  }
  return text;
}

constexpr std::string_view kTitle =
    "Completion times of jobs, cumulative, one curve for each policy";

}  // namespace

std::string CdfPlot(const Report& report) {
  const std::string drawn = Drawn(report);
  if (drawn.empty()) return "<p>No job completed.</p>\n";
  return LineLegend(NamesOf(report)) + BeginPlot(kTitle) + drawn + EndPlot();
}

std::string CdfPicture(const Report& report) {
  return BeginPicture(kTitle) + Drawn(report) + LegendInPlot(NamesOf(report)) + EndPlot();
}

}  // namespace pliant::simulator
