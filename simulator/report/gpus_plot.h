#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "simulator/model/run_record.h"

namespace pliant::simulator {

// Colours of applications, the same in all plots of a report. Applications come by name; those
// after the first kColours share one colour.
class ApplicationColours {
 public:
  explicit ApplicationColours(std::vector<std::string> applications);
  std::size_t Of(const std::string& application) const;
  std::size_t size() const { return names_.size(); }
  // By colour.
  const std::vector<std::string>& names() const { return names_; }

 private:
  std::vector<std::string> applications_;  // sorted, at most kColours
  std::vector<std::string> names_;
};

// A plot with more jobs than this has a band for each colour instead of each job, so that its size
// is bounded.
inline constexpr std::size_t kMaxBands = 400;

// GPUs over time, stacked: a band for each job, the first submitted at the bottom. The span of the
// run is divided into at most `max_steps` steps; a band has the mean GPUs of the job in each of
// them.
std::string GpusPlot(const RunRecord& run, const ApplicationColours& colours,
                     std::size_t max_steps);

}  // namespace pliant::simulator
