#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "operator/api/fields.h"

namespace pliant::api {

// Maximum numbers in a status.
inline constexpr std::size_t kMaxEvaluations = 16;
inline constexpr std::size_t kMaxNamedSums = 16;  // of one evaluation

// The result of evaluating the model on the test data.
struct Evaluation {
  std::int64_t step = 0;  // committed steps before it
  std::optional<std::int64_t> epoch;
  std::optional<double> loss;      // mean over the test data; finite
  std::optional<double> accuracy;  // from 0 to 1
  // Over the test data, by name; finite. `samples` is their number.
  std::map<std::string, double> sums;

  bool operator==(const Evaluation&) const = default;
};

// Reads the field `evaluations`. Of too many the last ones are kept; numbers that are not finite
// are left out.
std::vector<Evaluation> ReadEvaluations(Fields& fields);
// Null if there are none.
nlohmann::json EncodeEvaluations(const std::vector<Evaluation>& evaluations);

// The last ones of both, by step; of the same step the `newer` one. Evaluations after `step`, the
// last committed one, were lost with the steps before them; absent: it is not known.
std::vector<Evaluation> Merged(const std::vector<Evaluation>& older,
                               const std::vector<Evaluation>& newer,
                               const std::optional<std::int64_t>& step);

}  // namespace pliant::api
