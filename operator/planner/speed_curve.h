#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

// How fast a job trains by its number of learners, and which sizes are worth their GPUs for it.
namespace pliant::planner {

// The speeds with 1, 2, 3, ... learners, in thousandths of the speed with one learner, each from 0
// to kMaxSpeed. A measured curve may have any shape: where a further node is entered, it falls. A
// size beyond its end is as fast as the last one. Empty: unknown.
using SpeedCurve = std::vector<int>;

inline constexpr int kMaxSpeed = 100'000'000;

// The speed with `learners`; 0 without learners. The curve is not empty.
inline int SpeedWith(const SpeedCurve& curve, int learners) {
  if (learners <= 0) return 0;
  return curve[std::min(static_cast<std::size_t>(learners), curve.size()) - 1];
}

// A larger, faster size. `gain` is the speed that it adds, `sum` the speeds of both sizes together.
struct LargerSize {
  int to = 0;
  std::int64_t gain = 0;
  std::int64_t sum = 1;
  bool operator==(const LargerSize&) const = default;
};

// Returns the size from `from` + 1 to `most` that is faster than `from` and has the highest
// gain / (sum · learners more); of equal ones the smallest. nullopt: none is faster.
//
// To follow the highest `weight` · gain / (sum · GPUs more) of all jobs is a greedy maximization of
// Σ weight · ln speed, since ln(b / a) ≈ 2 (b - a) / (b + a). For a speed in proportion to the
// learners this is the rule of Sainte-Laguë (apportion.h): the quotient of size k is 1 / (2k + 1).
std::optional<LargerSize> BestLargerSize(const SpeedCurve& curve, int from, int most);

// The smallest of the fastest sizes from `from` to `most`: the last one that BestLargerSize
// reaches.
int FastestSize(const SpeedCurve& curve, int from, int most);

// A curve with the answer to the question that a plan asks most often: what follows the smallest
// size. Most jobs of a full cluster have that.
class SizesBySpeed {
 public:
  // `curve` outlives it.
  SizesBySpeed(const SpeedCurve& curve, int smallest, int most)
      : curve_(&curve), smallest_(smallest), second_(BestLargerSize(curve, smallest, most)) {}

  const SpeedCurve& curve() const { return *curve_; }
  // BestLargerSize; `most` is at most that of the constructor.
  std::optional<LargerSize> Next(int from, int most) const {
    const bool is_known = from == smallest_ && (!second_ || second_->to <= most);
    return is_known ? second_ : BestLargerSize(*curve_, from, most);
  }

 private:
  const SpeedCurve* curve_;  // never null
  int smallest_;
  std::optional<LargerSize> second_;
};

// Whether the speeds up to `most` learners are in proportion to the learners.
bool IsLinear(const SpeedCurve& curve, int most);

}  // namespace pliant::planner
