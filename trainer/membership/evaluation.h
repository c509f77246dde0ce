#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>

namespace pliant {

// The last evaluations that a learner keeps and reports.
inline constexpr std::size_t kEvaluationsKept = 16;

// The sums of one evaluation that are reported: if there are more, the first by name.
inline constexpr std::size_t kEvaluationSums = 16;

// The result of one evaluation on the test data.
struct Evaluation {
  std::uint64_t step = 0;  // committed steps before it
  std::uint64_t epoch = 0;
  std::optional<double> loss;  // mean over the test data; absent: it is not finite
  std::optional<double> accuracy;
  // Over the test data, by name: samples, weight, and the program's own. Finite.
  std::map<std::string, double> sums;
  bool operator==(const Evaluation&) const = default;
};

}  // namespace pliant
