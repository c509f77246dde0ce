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

// Who is to be a member, as functions of values.
namespace pliant {

// What becomes of one member of the current membership at the next boundary.
enum class MemberDisposition {
  kStays,
  kLeaves,  // it wants to, or is not wanted; it can still take part until then
  kAbsent,  // cannot be asked: it drops out
};

// The members of the next membership: those that stay in rank order, then `joiners` as they are
// given, `max_members` at the most (0: any number). When nobody stays but somebody joins, the
// first leaver stays for one more membership and is not counted, since a membership takes its state
// from a member.
std::vector<Member> NextMembers(const Membership& current,
                                const std::vector<MemberDisposition>& dispositions,
                                const std::vector<Member>& joiners, int max_members);

// Whose shards take the longest, and how much longer than the median of the others; of equal ones
// the first. None of fewer than two.
std::optional<Straggler> FindSlowest(const std::vector<std::pair<LearnerId, double>>& seconds);

// A connection that does not work, between two learners that do. The lesser id first.
using BrokenLink = std::pair<LearnerId, LearnerId>;
BrokenLink LinkOf(const LearnerId& a, const LearnerId& b);

// Members without whom no two of the rest have a broken link: a vertex cover of `broken`, chosen
// greedily. The member with the most broken links goes first, of equal ones the one of which more
// links `broke_lately`, to whomever, then the later rank. At most H(d) times as many go as
// necessary (Chvátal 1979), where d is the most broken links of one member and H(d) = 1 + 1/2 +
// ... + 1/d; but the last member that is one of `holders`, of the state, stays, and those that it
// cannot reach go instead.
std::set<LearnerId> EvictionSet(const std::vector<Member>& members,
                                const std::set<BrokenLink>& broken,
                                const std::set<BrokenLink>& broke_lately,
                                const std::set<LearnerId>& holders);

// Whether a link that broke at these times, the last one now, is not to be tried once more: twice
// within a minute, or three times within ten.
bool KeepsBreaking(std::span<const TimePoint> breaks);

}  // namespace pliant
