#pragma once

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
int SpeedWith(const SpeedCurve& curve, int learners);

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

// Whether the speeds up to `most` learners are in proportion to the learners.
bool IsLinear(const SpeedCurve& curve, int most);

}  // namespace pliant::planner
