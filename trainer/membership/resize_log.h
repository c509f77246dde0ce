#pragma once

#include <deque>
#include <string>
#include <vector>

#include "trainer/membership/plan.h"

namespace pliant {

// Why `to` had to replace `from`, as a sentence that names one of the learners that were lost.
// Pure.
std::string WhyRecovered(const Membership& from, const Membership& to);

// The last changes of size, for GET /v1/progress.
class ResizeLog {
 public:
  static constexpr std::size_t kKept = 64;

  void Begin(Resize resize);
  // A learner of `membership` opened it; `pause_seconds` is set if it was a member before.
  void Opened(MembershipId membership, std::optional<double> pause_seconds,
              std::uint64_t steps_lost);
  // All its members have opened it.
  void Running(MembershipId membership, double unix_seconds, std::uint64_t step);

  std::vector<Resize> resizes() const { return {resizes_.begin(), resizes_.end()}; }

 private:
  Resize* Find(MembershipId membership);

  std::deque<Resize> resizes_;
};

}  // namespace pliant
