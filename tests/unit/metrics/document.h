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

// What docs/metrics.md says its unit is, of a family in any section.
std::string DocumentedUnit(const std::string& name);

// "pliant_jobs{phase}" for each family and set of label names that the text of a /metrics has. The
// parts of a histogram are those of its family, without "le".
std::set<std::string> SeriesIn(const std::string& text);

// As SeriesIn gives them, if each family has a series.
std::set<std::string> SeriesOf(const std::vector<MetricFamily>& families);

}  // namespace pliant
