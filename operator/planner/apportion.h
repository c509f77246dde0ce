#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace pliant::planner {

// One queue of a pool, or one job of a queue, that wants seats. A seat is one GPU.
struct Claimant {
  std::int64_t weight = 1;  // at least 1
  // Seats that are given out before any other: what is guaranteed to it.
  std::int64_t floor = 0;
  // Seats that follow the floors: what it has and cannot give back, such as its minimum.
  std::int64_t kept = 0;
  std::int64_t cap = 0;   // seats that it can use; lowers `floor` and `kept` if these are larger
  std::int64_t held = 0;  // seats that it has now; only decides equal claims
};

// Divides `seats` one by one, by Sainte-Laguë's rule: the next seat goes to the claimant with the
// highest weight / (2 · seats + 1) that can still use one. Floors come first, then what is kept,
// then the rest. Of equal claims, one to a seat that is held goes first, then the claimant that
// comes first in `claimants`. Returns the seats of each.
//
// The order of seats does not depend on their number. So with one seat more nobody has fewer; and a
// claimant of a higher weight has no fewer, and the others no more.
// (Balinski and Young, Fair Representation, 1982: house monotonicity of divisor methods.)
std::vector<std::int64_t> Apportion(std::span<const Claimant> claimants, std::int64_t seats);

// The same for claimants in order of precedence: after floors and what is kept, the first gets all
// that it can use before the second gets any.
std::vector<std::int64_t> ApportionInOrder(std::span<const Claimant> claimants, std::int64_t seats);

}  // namespace pliant::planner
