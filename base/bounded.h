#pragma once

#include <cstdint>

namespace pliant {

// Saturating sums and differences: a result that the type cannot hold becomes its minimum or
// maximum.
inline std::int64_t BoundedSum(std::int64_t a, std::int64_t b) {
  std::int64_t sum = 0;
  if (!__builtin_add_overflow(a, b, &sum)) return sum;
  return b > 0 ? INT64_MAX : INT64_MIN;
}
inline std::int64_t BoundedDifference(std::int64_t a, std::int64_t b) {
  std::int64_t difference = 0;
  if (!__builtin_sub_overflow(a, b, &difference)) return difference;
  return b > 0 ? INT64_MIN : INT64_MAX;
}

}  // namespace pliant
