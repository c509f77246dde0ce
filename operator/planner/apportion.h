#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "operator/planner/speed_curve.h"

namespace pliant::planner {

// One queue of a pool, or one job of a queue, that wants seats. A seat is one GPU.
struct Claimant {
  std::int64_t weight = 1;  // at least 1
  // Seats that are given out before any other: what is guaranteed to it.
  std::int64_t floor = 0;
  // Seats that follow the floors: what it has and cannot give back, such as its minimum.
  std::int64_t kept = 0;
  std::int64_t cap = 0;   // seats that it can use; lowers `floor` and `kept` if these are larger
  std::int64_t held = 0;  // seats that it has now; decides equal claims
  // Absent: what it gains from seats is in proportion to them. Otherwise it is the speed of a job,
  // each of whose learners takes `seats_per_learner`; beyond what is kept, it gets the seats of
  // whole sizes that are faster.
  const SizesBySpeed* speeds = nullptr;
  std::int64_t seats_per_learner = 1;
  int hold_percent = 0;  // its claim to seats that it has counts this much more
};

// Divides `seats` one by one, by Sainte-Laguë's rule: the next seat goes to the claimant with the
// highest weight / (2 · seats + 1) that can still use one. Floors come first, then what is kept,
// then the rest. Of equal claims, one to a seat that is held goes first, then the claimant that
// comes first in `claimants`. A claimant with speeds claims its best larger size by weight · gain /
// (sum · seats), see speed_curve.h; if too few seats are left, the best one that takes fewer.
// Returns the seats of each.
//
// Without speeds the order of seats does not depend on their number. So with one seat more nobody
// has fewer; and a claimant of a higher weight has no fewer, and the others no more.
// (Balinski and Young, Fair Representation, 1982: house monotonicity of divisor methods.)
std::vector<std::int64_t> Apportion(std::span<const Claimant> claimants, std::int64_t seats);

// The same for claimants in order of precedence: after floors and what is kept, the first gets all
// that it can use before the second gets any.
std::vector<std::int64_t> ApportionInOrder(std::span<const Claimant> claimants, std::int64_t seats);

}  // namespace pliant::planner
