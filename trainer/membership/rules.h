#pragma once

#include <compare>
#include <optional>
#include <set>
#include <span>
#include <utility>
#include <vector>

#include "base/event_loop.h"
#include "trainer/membership/plan.h"
#include "trainer/membership/types.h"

// The rules of membership, as functions of values.
namespace pliant {

// The fate of one member of the current membership at the next boundary.
enum class MemberDisposition {
  kStays,
  kLeaves,  // it wants to leave or is not wanted; until then it can take part
  kAbsent,  // it cannot be reached: it drops out
};

// The members of the next membership: those that stay, in rank order, then `joiners` in their
// order, at most `max_members` (0: no limit). If no member stays but learners join, the first
// leaver stays for one more membership and is not counted, since a membership takes its state from
// a member.
std::vector<Member> NextMembers(const Membership& current,
                                const std::vector<MemberDisposition>& dispositions,
                                const std::vector<Member>& joiners, int max_members);

// The learner with the slowest shards, and its time divided by the median of the others; of equals
// the first. None if there are fewer than two.
std::optional<Straggler> FindSlowest(const std::vector<std::pair<LearnerId, double>>& seconds);

// A connection that does not work, between two learners that do. The lower id comes first.
using BrokenLink = std::pair<LearnerId, LearnerId>;
BrokenLink LinkOf(const LearnerId& a, const LearnerId& b);

// The members to evict so that no two of the rest have a broken link: a vertex cover of `broken`,
// chosen greedily. The member with the most broken links goes first; of equals, the one with more
// links in `broke_lately`, to any learner; then the later rank. At most H(d) times as many members
// go as necessary (Chvátal 1979), where d is the most broken links of one member and H(d) = 1 + 1/2
// + ... + 1/d. Exception: the last member of `holders`, which hold the state, stays, and those that
// it cannot reach go instead.
std::set<LearnerId> EvictionSet(const std::vector<Member>& members,
                                const std::set<BrokenLink>& broken,
                                const std::set<BrokenLink>& broke_lately,
                                const std::set<LearnerId>& holders);

// Whether a link that broke at these times, the last one now, must not be tried once more: it broke
// twice within a minute, or three times within ten.
bool KeepsBreaking(std::span<const TimePoint> breaks);

}  // namespace pliant
