#pragma once

#include <compare>
#include <cstdint>

#include "operator/planner/speed_curve.h"

namespace pliant::planner {

// A claim to the next GPUs: weight · gain / divisor, as divisor methods of apportionment call it.
// Compared without rounding.
struct Quotient {
  std::int64_t numerator = 0;
  std::int64_t divisor = 1;  // at least 1

  friend std::strong_ordering operator<=>(const Quotient& left, const Quotient& right) {
    return Wide{left.numerator} * right.divisor <=> Wide{right.numerator} * left.divisor;
  }
  friend bool operator==(const Quotient& left, const Quotient& right) {
    return (left <=> right) == 0;
  }

 private:
  __extension__ using Wide = __int128;
};

// The claim to a larger size of `gpus` GPUs more, raised by `percent`.
inline Quotient ClaimBySpeed(std::int64_t weight, const LargerSize& size, std::int64_t gpus,
                             int percent) {
  return {.numerator = weight * size.gain * (100 + percent), .divisor = size.sum * gpus * 100};
}

}  // namespace pliant::planner
