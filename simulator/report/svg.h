#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

// Parts of a plot. The plots of a page share its style.
namespace pliant::simulator {

// The area of a plot within its picture, in pixels.
inline constexpr int kPlotLeft = 64;
inline constexpr int kPlotTop = 12;
inline constexpr int kPlotWidth = 880;
inline constexpr int kPlotHeight = 240;

// "<svg ...>" with a title, which screen readers read and browsers show as a tooltip.
std::string BeginPlot(std::string_view title);
std::string EndPlot();
// A plot in a file of its own, with its style and a white page, instead of BeginPlot.
std::string BeginPicture(std::string_view title);

struct Tick {
  double part = 0;  // of the axis, from 0 to 1
  std::string label;
};

// Round values from 0 to `max`, at most `max_count`.
std::vector<Tick> NumberTicks(double max, int max_count);

// Seconds on a logarithmic axis. 0 is shown at its left end.
class LogSeconds {
 public:
  // The axis contains both.
  LogSeconds(double min_seconds, double max_seconds);
  double PartOf(double seconds) const;  // of the axis
  std::vector<Tick> Ticks() const;

 private:
  double low_ = 0;  // log10
  double high_ = 1;
};

// Horizontal axes with grid lines. `label` names the quantity and its unit.
std::string AxisX(const std::vector<Tick>& ticks, std::string_view label);
std::string AxisY(const std::vector<Tick>& ticks, std::string_view label);

// Colours that people with any colour vision tell apart, each with a dash for those who see none.
// They repeat after kColours.
inline constexpr std::size_t kColours = 6;
std::string_view LineColour(std::size_t index);
std::string_view LineDash(std::size_t index);

// A list of "sample, name". The names are not escaped yet.
std::string LineLegend(const std::vector<std::string>& names);
// The same lines, at the upper left of a plot.
std::string LegendInPlot(const std::vector<std::string>& names);

// The style sheet of plots, without its tag.
std::string_view PlotStyle();

}  // namespace pliant::simulator
