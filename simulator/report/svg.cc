#include "simulator/report/svg.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "base/format.h"
#include "simulator/report/markup.h"

namespace pliant::simulator {
namespace {

constexpr int kWidth = 960;
constexpr int kHeight = kPlotTop + kPlotHeight + 48;
constexpr int kBottom = kPlotTop + kPlotHeight;

// The palette of Okabe and Ito.
constexpr std::array<std::string_view, kColours> kPalette = {"#0072b2", "#e69f00", "#009e73",
                                                             "#cc79a7", "#56b4e9", "#d55e00"};
constexpr std::array<std::string_view, kColours> kDashes = {"none",     "8 4", "2 3",
                                                            "10 3 2 3", "4 4", "14 4"};
constexpr std::string_view kStyle = R"(
.grid { stroke: var(--grid); } .axis { fill: var(--quiet); font-size: 12px; }
.line { fill: none; stroke-width: 2; }
)";

// 1, 2 or 5 times a power of ten: the smallest such step with at most `max_count` steps.
double RoundStep(double max, int max_count) {
  const double least = max / max_count;
  const double power = std::pow(10.0, std::floor(std::log10(least)));
  for (const double factor : {1.0, 2.0, 5.0}) {
    if (factor * power >= least) return factor * power;
  }
  return 10 * power;
}

struct RoundTime {
  double seconds;
  std::string_view label;
};
constexpr auto kRoundTimes = std::to_array<RoundTime>({{0.001, "1 ms"},
                                                       {0.01, "10 ms"},
                                                       {0.1, "100 ms"},
                                                       {1, "1 s"},
                                                       {10, "10 s"},
                                                       {60, "1 min"},
                                                       {600, "10 min"},
                                                       {3600, "1 h"},
                                                       {10 * 3600, "10 h"},
                                                       {4 * 86400, "4 d"},
                                                       {40 * 86400, "40 d"},
                                                       {365 * 86400, "1 year"},
                                                       {3650.0 * 86400, "10 years"}});

}  // namespace

std::string BeginPlot(std::string_view title) {
  const std::string text = Escaped(title);
  return Format("<svg viewBox=\"0 0 {} {}\" role=\"img\" aria-label=\"{}\"><title>{}</title>\n",
                kWidth, kHeight, text, text);
}

std::string BeginPicture(std::string_view title) {
  const std::string text = Escaped(title);
  return Format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {0} {1}\" width=\"{0}\" "
      "height=\"{1}\" font-family=\"sans-serif\" role=\"img\" "
      "aria-label=\"{2}\"><title>{2}</title>\n"
      "<style>svg {{ --grid: #d8dee4; --quiet: #57606a; --page: #ffffff; }} {3}</style>\n"
      "<rect width=\"{0}\" height=\"{1}\" fill=\"#ffffff\"/>\n",
      kWidth, kHeight, text, kStyle);
}

std::string EndPlot() { return "</svg>\n"; }

std::vector<Tick> NumberTicks(double max, int max_count) {
  if (!std::isfinite(max) || max <= 0) return {{.part = 0, .label = "0"}};
  const double step = RoundStep(max, max_count);
  const int digits = step < 1 ? static_cast<int>(std::ceil(-std::log10(step))) : 0;
  std::vector<Tick> ticks;
  for (int at = 0; at * step <= max * (1 + 1e-9); ++at) {
    ticks.push_back({.part = at * step / max, .label = Fixed(at * step, digits)});
  }
  return ticks;
}

LogSeconds::LogSeconds(double min_seconds, double max_seconds) {
  constexpr double kMinSeconds = 0.001;
  const double low = std::max(kMinSeconds, min_seconds);
  low_ = std::log10(low);
  high_ = std::max(low_ + 0.5, std::log10(std::max(low, max_seconds)));
}

double LogSeconds::PartOf(double seconds) const {
  if (seconds <= 0) return 0;
  return std::clamp((std::log10(seconds) - low_) / (high_ - low_), 0.0, 1.0);
}

std::vector<Tick> LogSeconds::Ticks() const {
  std::vector<Tick> ticks;
  for (const auto& [seconds, label] : kRoundTimes) {
    const double at = std::log10(seconds);
    if (at < low_ || at > high_) continue;
    ticks.push_back({.part = PartOf(seconds), .label = std::string(label)});
  }
  // A short axis may lie between two round times.
  if (ticks.size() < 2) {
    ticks = {{.part = 0, .label = ShownSeconds(std::pow(10.0, low_))},
             {.part = 1, .label = ShownSeconds(std::pow(10.0, high_))}};
  }
  return ticks;
}

std::string AxisX(const std::vector<Tick>& ticks, std::string_view label) {
  std::string text;
  for (const Tick& tick : ticks) {
    const std::string x = Fixed(kPlotLeft + tick.part * kPlotWidth, 1);
    text += Format(
        "<line class=\"grid\" x1=\"{0}\" y1=\"{1}\" x2=\"{0}\" y2=\"{2}\"/>"
        "<text class=\"axis\" x=\"{0}\" y=\"{3}\" text-anchor=\"middle\">{4}</text>\n",
        x, kPlotTop, kBottom + 4, kBottom + 18, Escaped(tick.label));
  }
  return text + Format("<text class=\"axis\" x=\"{}\" y=\"{}\" text-anchor=\"middle\">{}</text>\n",
                       kPlotLeft + kPlotWidth / 2, kBottom + 38, Escaped(label));
}

std::string AxisY(const std::vector<Tick>& ticks, std::string_view label) {
  std::string text;
  for (const Tick& tick : ticks) {
    const double y = kBottom - tick.part * kPlotHeight;
    text += Format(
        "<line class=\"grid\" x1=\"{0}\" y1=\"{1}\" x2=\"{2}\" y2=\"{1}\"/>"
        "<text class=\"axis\" x=\"{3}\" y=\"{4}\" text-anchor=\"end\">{5}</text>\n",
        kPlotLeft, Fixed(y, 1), kPlotLeft + kPlotWidth, kPlotLeft - 8, Fixed(y + 4, 1),
        Escaped(tick.label));
  }
  return text + Format(
                    "<text class=\"axis\" x=\"14\" y=\"{0}\" transform=\"rotate(-90 14 {0})\" "
                    "text-anchor=\"middle\">{1}</text>\n",
                    kPlotTop + kPlotHeight / 2, Escaped(label));
}

std::string_view LineColour(std::size_t index) { return kPalette[index % kColours]; }
std::string_view LineDash(std::size_t index) { return kDashes[index % kColours]; }

std::string LineLegend(const std::vector<std::string>& names) {
  std::string items;
  for (std::size_t index = 0; index < names.size(); ++index) {
    items += Format(
        "<li><svg width=\"40\" height=\"14\" aria-hidden=\"true\"><path class=\"line\" "
        "d=\"M0 7H40\" stroke=\"{}\" stroke-dasharray=\"{}\"/></svg> {}</li>",
        LineColour(index), LineDash(index), EscapedName(names[index]));
  }
  return "<ul class=\"legend\">" + items + "</ul>\n";
}

std::string LegendInPlot(const std::vector<std::string>& names) {
  std::string text;
  for (std::size_t index = 0; index < names.size(); ++index) {
    const int y = kPlotTop + 16 + 18 * static_cast<int>(index);
    text += Format(
        "<path class=\"line\" d=\"M{} {}h40\" stroke=\"{}\" stroke-dasharray=\"{}\"/>"
        "<text class=\"axis\" x=\"{}\" y=\"{}\">{}</text>\n",
        kPlotLeft + 12, y, LineColour(index), LineDash(index), kPlotLeft + 60, y + 4,
        EscapedName(names[index]));
  }
  return text;
}

std::string_view PlotStyle() { return kStyle; }

}  // namespace pliant::simulator
