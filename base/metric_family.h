#pragma once

#include <string>
#include <vector>

namespace pliant {

// Describes one family of metrics of a program. docs/metrics.md has the same data; a test compares
// them.
struct MetricFamily {
  std::string name;
  std::string type;                 // "counter", "gauge" or "histogram"
  std::vector<std::string> labels;  // of each series, sorted by name
  std::string help;
  bool operator==(const MetricFamily&) const = default;
};

// The content type of the answer to GET /metrics.
inline constexpr const char* kMetricsContentType = "text/plain; version=0.0.4; charset=utf-8";

}  // namespace pliant
