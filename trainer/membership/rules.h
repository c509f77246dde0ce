#pragma once

#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "trainer/membership/plan.h"
#include "trainer/membership/types.h"

// Who is to be a member, as functions of values.
namespace pliant {

// What becomes of one member of the present membership at the next boundary.
enum class MemberFate {
  kStays,
  kLeaves,  // it wants to, or is not wanted; it can still take part until then
  kAbsent,  // cannot be asked: it drops out
};

// The members of the next membership: those that stay in rank order, then `joiners` as they are
// given, `members_most` at the most (0: any number). When nobody stays but somebody joins, the
// first leaver stays for one more membership and is not counted, since a membership takes its state
// from a member.
std::vector<Member> NextMembers(const Membership& present, const std::vector<MemberFate>& fates,
                                const std::vector<Member>& joiners, int members_most);

// Whose shards take the longest, and how much longer than the median of the others; of equal ones
// the first. None of fewer than two.
std::optional<Straggler> FindSlowest(const std::vector<std::pair<LearnerId, double>>& seconds);

// A connection that does not work, between two learners that do. The lesser id first.
using BrokenLink = std::pair<LearnerId, LearnerId>;
BrokenLink LinkOf(const LearnerId& a, const LearnerId& b);

// The fewest members without which the rest has no broken link; of equally many the later ranks
// (exact up to 16 learners with broken links, then the one with the most of them goes first).
std::set<LearnerId> FewestToRemove(const std::vector<Member>& members,
                                   const std::set<BrokenLink>& broken);

}  // namespace pliant
