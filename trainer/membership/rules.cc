#include "trainer/membership/rules.h"

#include <algorithm>
#include <bit>
#include <cstdint>
#include <map>
#include <tuple>

#include "base/check.h"

namespace pliant {
namespace {

constexpr std::size_t kExactMost = 16;

// A link that breaks again within the former, or twice within the latter, is not tried once more.
constexpr Duration kBreaksAgain = std::chrono::minutes(1);
constexpr Duration kBreaksTwice = std::chrono::minutes(10);

// Indices into the members, ascending.
using Edges = std::vector<std::pair<int, int>>;

// Tries all subsets of the `ranks` that have broken links.
std::vector<int> SmallestCover(const std::vector<int>& ranks, const Edges& edges) {
  const auto bit_of = [&](int rank) {
    return 1U << (std::ranges::find(ranks, rank) - ranks.begin());
  };
  std::uint32_t best = (1U << ranks.size()) - 1;
  // Downwards: of equally many, the greatest set, which holds the later ranks, is met first.
  for (std::uint32_t set = best; set != 0; --set) {
    if (std::popcount(set) >= std::popcount(best)) continue;
    const bool covers = std::ranges::all_of(edges, [&](const auto& edge) {
      return (set & (bit_of(edge.first) | bit_of(edge.second))) != 0;
    });
    if (covers) best = set;
  }
  std::vector<int> cover;
  for (std::size_t i = 0; i < ranks.size(); ++i) {
    if ((best >> i & 1U) != 0) cover.push_back(ranks[i]);
  }
  return cover;
}

std::vector<int> GreedyCover(Edges edges) {
  std::vector<int> cover;
  while (!edges.empty()) {
    std::map<int, int> degree;
    for (const auto& [a, b] : edges) ++degree[a], ++degree[b];
    const int worst = std::ranges::max_element(degree, [](const auto& a, const auto& b) {
                        return std::pair(a.second, a.first) < std::pair(b.second, b.first);
                      })->first;
    cover.push_back(worst);
    std::erase_if(edges,
                  [&](const auto& edge) { return edge.first == worst || edge.second == worst; });
  }
  return cover;
}

}  // namespace

std::vector<Member> NextMembers(const Membership& present, const std::vector<MemberFate>& fates,
                                const std::vector<Member>& joiners, int members_most) {
  CHECK(fates.size() == present.members.size(), "every member has a fate");
  std::vector<Member> next;
  for (std::size_t rank = 0; rank < fates.size(); ++rank) {
    if (fates[rank] == MemberFate::kStays) next.push_back(present.members[rank]);
  }
  std::size_t room = joiners.size();
  if (members_most > 0) {
    const auto most = static_cast<std::size_t>(members_most);
    room = std::min(room, most - std::min(most, next.size()));
  }
  if (next.empty() && room > 0) {
    const auto bridge = std::ranges::find(fates, MemberFate::kLeaves);
    if (bridge != fates.end()) {
      next.push_back(present.members[static_cast<std::size_t>(bridge - fates.begin())]);
    }
  }
  next.insert(next.end(), joiners.begin(), joiners.begin() + static_cast<std::ptrdiff_t>(room));
  return next;
}

std::optional<Straggler> FindSlowest(const std::vector<std::pair<LearnerId, double>>& seconds) {
  if (seconds.size() < 2) return std::nullopt;
  const auto slowest = std::ranges::max_element(seconds, {}, &std::pair<LearnerId, double>::second);
  std::vector<double> others;
  for (auto it = seconds.begin(); it != seconds.end(); ++it) {
    if (it != slowest) others.push_back(it->second);
  }
  const auto middle = others.begin() + std::ssize(others) / 2;
  std::ranges::nth_element(others, middle);
  if (*middle <= 0) return std::nullopt;
  return Straggler{.id = slowest->first, .slowdown = slowest->second / *middle};
}

BrokenLink LinkOf(const LearnerId& a, const LearnerId& b) {
  return a < b ? BrokenLink{a, b} : BrokenLink{b, a};
}

std::set<LearnerId> FewestToRemove(const std::vector<Member>& members,
                                   const std::set<BrokenLink>& broken) {
  const auto rank_of = [&](const LearnerId& id) {
    const auto found = std::ranges::find(members, id, &Member::id);
    return found == members.end() ? -1 : static_cast<int>(found - members.begin());
  };
  Edges edges;
  std::set<int> touched;
  for (const auto& [a, b] : broken) {
    const int first = rank_of(a);
    const int second = rank_of(b);
    if (first < 0 || second < 0) continue;
    edges.emplace_back(first, second);
    touched.insert({first, second});
  }
  const std::vector<int> ranks(touched.begin(), touched.end());
  std::set<LearnerId> removed;
  for (const int rank :
       ranks.size() <= kExactMost ? SmallestCover(ranks, edges) : GreedyCover(edges)) {
    removed.insert(members[static_cast<std::size_t>(rank)].id);
  }
  return removed;
}

bool KeepsBreaking(std::span<const TimePoint> breaks) {
  const std::size_t count = breaks.size();
  return (count >= 2 && breaks[count - 1] - breaks[count - 2] < kBreaksAgain) ||
         (count >= 3 && breaks[count - 1] - breaks[count - 3] < kBreaksTwice);
}

std::set<LearnerId> FindOffenders(const std::vector<Member>& members,
                                  const std::set<Violation>& violations, MembershipId present,
                                  const std::set<LearnerId>& holders) {
  const auto rank_of = [&](const LearnerId& id) {
    return std::ranges::find(members, id, &Member::id) - members.begin();
  };
  const auto of_members = [&](const Violation& violation) {
    return rank_of(violation.witness) < std::ssize(members) &&
           rank_of(violation.accused) < std::ssize(members);
  };
  std::map<LearnerId, std::set<LearnerId>> witnesses;  // against it
  std::map<LearnerId, std::set<LearnerId>> at_odds;    // with it
  std::map<std::pair<LearnerId, LearnerId>, int> times;
  for (const Violation& violation : violations) {
    if (!of_members(violation)) continue;
    witnesses[violation.accused].insert(violation.witness);
    at_odds[violation.accused].insert(violation.witness);
    at_odds[violation.witness].insert(violation.accused);
    ++times[std::pair(violation.witness, violation.accused)];
  }
  const auto against = [&](const LearnerId& id) {
    return std::tuple(at_odds[id].size(), witnesses[id].size(), rank_of(id));
  };
  std::set<LearnerId> offenders;
  const auto others_hold = [&](const LearnerId& id) {
    return std::ranges::any_of(members, [&](const Member& member) {
      return member.id != id && holders.contains(member.id) && !offenders.contains(member.id);
    });
  };
  for (const Violation& violation : violations) {
    const auto& [membership, witness, accused] = violation;
    if (membership != present || !of_members(violation)) continue;
    if (offenders.contains(witness) || offenders.contains(accused)) continue;
    const std::size_t say_so = witnesses[accused].size();
    const bool most_say_so = say_so > 1 && 2 * say_so > members.size() - 1;
    if (!most_say_so && times[std::pair(witness, accused)] < 2) continue;
    const bool blames_accused = against(accused) > against(witness);
    const LearnerId& worse = blames_accused ? accused : witness;
    const LearnerId& other = blames_accused ? witness : accused;
    offenders.insert(holders.contains(worse) && !others_hold(worse) ? other : worse);
  }
  return offenders;
}

}  // namespace pliant
