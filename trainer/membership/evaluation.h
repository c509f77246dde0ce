#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>

namespace pliant {

// The last evaluations that a learner keeps and reports.
inline constexpr std::size_t kEvaluationsKept = 16;

// The result of one evaluation on the test data.
struct Evaluation {
  std::uint64_t step = 0;  // committed steps before it
  std::uint64_t epoch = 0;
  std::optional<double> loss;  // mean over the test data; absent: it is not finite
  std::optional<double> accuracy;
  std::map<std::string, double> sums;  // over the test data, by name; finite
  bool operator==(const Evaluation&) const = default;
};

}  // namespace pliant
