#pragma once

#include <string>
#include <vector>

namespace pliant {

// What a program says of one family of metrics. docs/metrics.md has the same, which a test
// compares.
struct MetricFamily {
  std::string name;
  std::string type;                 // "counter", "gauge" or "histogram"
  std::vector<std::string> labels;  // of each of its series, in order of name
  std::string help;
  bool operator==(const MetricFamily&) const = default;
};

// Of the answer to GET /metrics.
inline constexpr const char* kMetricsContentType = "text/plain; version=0.0.4; charset=utf-8";

}  // namespace pliant
