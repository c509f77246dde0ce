#pragma once

#include <ostream>
#include <set>
#include <string>
#include <vector>

#include "base/metric_family.h"

namespace pliant {

inline std::ostream& operator<<(std::ostream& out, const MetricFamily& family) {
  out << family.name << " " << family.type << " {";
  for (const std::string& label : family.labels) out << " " << label;
  return out << " }: " << family.help;
}

// The rows of the table under the heading "## <section>" of docs/metrics.md, by name.
std::vector<MetricFamily> DocumentedIn(const std::string& section);

// The unit of a family, of any section, according to docs/metrics.md.
std::string DocumentedUnit(const std::string& name);

// "pliant_jobs{phase}" for each family and set of label names in the text of a /metrics. The series
// of a histogram count as those of its family, without "le".
std::set<std::string> SeriesIn(const std::string& text);

// In the form of SeriesIn, assuming that each family has a series.
std::set<std::string> SeriesOf(const std::vector<MetricFamily>& families);

}  // namespace pliant
