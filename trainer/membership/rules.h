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

// Whether a link that broke at these times, the last one now, is not to be tried once more: twice
// within a minute, or three times within ten.
bool KeepsBreaking(std::span<const TimePoint> breaks);

// What one member says of another: it sent what the protocol does not allow.
struct Violation {
  MembershipId membership;  // in which
  LearnerId witness;
  LearnerId accused;
  auto operator<=>(const Violation&) const = default;
};

// Whom `members` are to do without for the violations of the membership `present`; those of earlier
// ones speak for or against the two.
//
// One witness alone may have read wrongly, once: it has to say so again, unless more than half of
// all others say it of the same member. Then that one of the two goes that is at odds with more
// members (who accuses many, and nobody else does, reads wrongly); of equal ones the one that more
// accuse. So of two members it is the accused: what is wrong is more often what is sent than what
// is made of it, and a lie is worth little when its teller is to train alone. If each accuses the
// other, nobody can tell, and the later rank goes. The last one of `holders`, of the state, stays.
std::set<LearnerId> FindOffenders(const std::vector<Member>& members,
                                  const std::set<Violation>& violations, MembershipId present,
                                  const std::set<LearnerId>& holders);

}  // namespace pliant
