#include "simulator/report/gpus_plot.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <utility>

#include "base/format.h"
#include "simulator/report/gpu_time.h"
#include "simulator/report/markup.h"
#include "simulator/report/svg.h"

namespace pliant::simulator {
namespace {

// Coordinates of areas are whole tenths of a pixel, from the upper left corner of the plot. So
// paths are short, and neighbouring bands have the same edge.
constexpr int kScale = 10;

struct Band {
  std::string title;
  std::size_t colour = 0;
  std::vector<Holding> holdings;
};

std::string NameOf(const std::string& application) {
  return application.empty() ? "unknown" : application;
}

std::vector<Band> BandsOf(const RunRecord& run, const ApplicationColours& colours) {
  std::vector<Band> bands;
  if (run.jobs.size() > kMaxBands) {
    for (std::size_t colour = 0; colour < colours.size(); ++colour) {
      bands.push_back({.title = EscapedName(colours.names()[colour]), .colour = colour});
    }
    for (const JobRecord& job : run.jobs) {
      const std::vector<Holding> holdings = HoldingsOf(run, job);
      std::vector<Holding>& all = bands[colours.Of(job.application)].holdings;
      all.insert(all.end(), holdings.begin(), holdings.end());
    }
    return bands;
  }
  for (const JobRecord& job : run.jobs) {
    bands.push_back(
        {.title = Format("{} ({}), {} GPU h", EscapedName(job.name),
                         EscapedName(NameOf(job.application)), Fixed(job.gpu_seconds / 3600, 1)),
         .colour = colours.Of(job.application),
         .holdings = HoldingsOf(run, job)});
  }
  return bands;
}

// A path of horizontal and vertical lines, as short as possible.
class Stairs {
 public:
  Stairs(int x, int y) : text_(Format("M{} {}", x, y)), x_(x), y_(y), drawn_x_(x) {}
  void To(int x, int y) {
    if (y != y_) {
      DrawX();
      text_ += Format("v{}", y - y_);
      y_ = y;
    }
    x_ = x;
  }
  std::string Close() {
    DrawX();
    return text_ + "Z";
  }

 private:
  void DrawX() {
    if (x_ != drawn_x_) text_ += Format("h{}", x_ - drawn_x_);
    drawn_x_ = x_;
  }

  std::string text_;
  int x_ = 0;
  int y_ = 0;
  int drawn_x_ = 0;
};

// The outline of a band: for each stretch of steps in which it has a height, its upper edge to the
// right, then its lower edge back. `x` has one more number than there are steps.
std::string Outline(const std::vector<int>& x, const std::vector<int>& upper,
                    const std::vector<int>& lower) {
  std::string path;
  std::size_t at = 0;
  while (at < upper.size()) {
    if (upper[at] == lower[at]) {
      ++at;
      continue;
    }
    const std::size_t begin = at;
    Stairs stairs(x[begin], lower[begin]);
    for (; at < upper.size() && upper[at] != lower[at]; ++at) {
      stairs.To(x[at], upper[at]);
      stairs.To(x[at + 1], upper[at]);
    }
    for (std::size_t back = at; back > begin; --back) {
      stairs.To(x[back], lower[back - 1]);
      stairs.To(x[back - 1], lower[back - 1]);
    }
    path += stairs.Close();
  }
  return path;
}

std::vector<int> XOf(const RunRecord& run, const TimeSteps& steps) {
  const auto span = static_cast<double>(run.end - steps.begin);
  std::vector<int> x;
  for (std::size_t at = 0; at <= steps.count; ++at) {
    const double part = static_cast<double>(at) * static_cast<double>(steps.length) / span;
    x.push_back(static_cast<int>(std::lround(std::min(1.0, part) * kPlotWidth * kScale)));
  }
  return x;
}

}  // namespace

ApplicationColours::ApplicationColours(std::vector<std::string> applications)
    : applications_(std::move(applications)) {
  std::ranges::sort(applications_);
  const auto duplicates = std::ranges::unique(applications_);
  applications_.erase(duplicates.begin(), duplicates.end());
  const std::size_t others = applications_.size() - std::min(applications_.size(), kColours);
  applications_.resize(applications_.size() - others);
  for (const std::string& application : applications_) names_.push_back(NameOf(application));
  if (others > 0) names_.push_back(Counted(static_cast<std::int64_t>(others), "other application"));
}

std::size_t ApplicationColours::Of(const std::string& application) const {
  const auto at = std::ranges::lower_bound(applications_, application);
  return at != applications_.end() && *at == application
             ? static_cast<std::size_t>(at - applications_.begin())
             : kColours;
}

std::string GpusPlot(const RunRecord& run, const ApplicationColours& colours,
                     std::size_t max_steps) {
  const TimeSteps steps = StepsOf(run, max_steps);
  if (steps.count == 0) return "<p>The run is empty.</p>\n";
  const std::vector<Band> bands = BandsOf(run, colours);
  std::vector<double> total(steps.count);
  for (const Band& band : bands) AddMeanGpus(band.holdings, steps, total);
  const double top = std::max({1.0, static_cast<double>(run.gpus), std::ranges::max(total)});
  const auto y_of = [&](double gpus) {
    return static_cast<int>(std::lround((1 - gpus / top) * kPlotHeight * kScale));
  };
  const std::vector<int> x = XOf(run, steps);

  std::string areas;
  std::vector<double> sum(steps.count);
  std::vector<int> lower(steps.count, y_of(0));
  for (const Band& band : bands) {
    AddMeanGpus(band.holdings, steps, sum);
    std::vector<int> upper;
    for (const double gpus : sum) upper.push_back(y_of(gpus));
    const std::string path = Outline(x, upper, lower);
    lower = std::move(upper);
    if (path.empty()) continue;
    areas += Format("<path {} d=\"{}\"><title>{}</title></path>\n", AreaFill(band.colour), path,
                    band.title);
  }
  return BeginPlot(Format("GPUs over time of policy {} on workload {}, stacked by job",
                          ShownName(run.policy, kMaxLineBytes),
                          ShownName(run.workload, kMaxLineBytes))) +
         AxisX(TimeTicks(static_cast<double>(run.end - steps.begin) / 1000, 12),
               "time since the first submission") +
         AxisY(NumberTicks(top, 8), "GPUs") +
         Format("<g class=\"areas\" transform=\"translate({} {}) scale(.1)\">\n{}</g>\n", kPlotLeft,
                kPlotTop, areas) +
         EndPlot();
}

}  // namespace pliant::simulator
