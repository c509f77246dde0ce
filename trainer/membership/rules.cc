#include "trainer/membership/rules.h"

#include <algorithm>
#include <map>

#include "base/check.h"

namespace pliant {
namespace {

// A link that breaks again within the first time, or twice within the second, is not tried once
// more.
constexpr Duration kBreaksAgain = std::chrono::minutes(1);
constexpr Duration kBreaksTwice = std::chrono::minutes(10);

std::map<LearnerId, int> LinksOfEach(const std::set<BrokenLink>& links) {
  std::map<LearnerId, int> links_of;
  for (const auto& [a, b] : links) {
    ++links_of[a];
    ++links_of[b];
  }
  return links_of;
}

}  // namespace

std::vector<Member> NextMembers(const Membership& current,
                                const std::vector<MemberDisposition>& dispositions,
                                const std::vector<Member>& joiners, int max_members) {
  CHECK(dispositions.size() == current.members.size(), "every member has a disposition");
  std::vector<Member> next;
  for (std::size_t rank = 0; rank < dispositions.size(); ++rank) {
    if (dispositions[rank] == MemberDisposition::kStays) next.push_back(current.members[rank]);
  }
  std::size_t room = joiners.size();
  if (max_members > 0) {
    const auto max = static_cast<std::size_t>(max_members);
    room = std::min(room, max - std::min(max, next.size()));
  }
  if (next.empty() && room > 0) {
    const auto bridge = std::ranges::find(dispositions, MemberDisposition::kLeaves);
    if (bridge != dispositions.end()) {
      next.push_back(current.members[static_cast<std::size_t>(bridge - dispositions.begin())]);
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

std::set<LearnerId> EvictionSet(const std::vector<Member>& members,
                                const std::set<BrokenLink>& broken,
                                const std::set<BrokenLink>& broke_lately,
                                const std::set<LearnerId>& holders) {
  const auto is_member = [&](const LearnerId& id) {
    return std::ranges::contains(members, id, &Member::id);
  };
  std::set<BrokenLink> uncovered = broken;
  std::erase_if(uncovered, [&](const BrokenLink& link) {
    return link.first == link.second || !is_member(link.first) || !is_member(link.second);
  });
  auto holders_left = std::ranges::count_if(
      members, [&](const Member& member) { return holders.contains(member.id); });
  std::map<LearnerId, int> lately = LinksOfEach(broke_lately);
  std::set<LearnerId> evicted;
  while (!uncovered.empty()) {
    std::map<LearnerId, int> now = LinksOfEach(uncovered);
    const auto against = [&](const LearnerId& id) { return std::pair(now[id], lately[id]); };
    const LearnerId* worst = nullptr;
    for (const auto& [id, address] : members) {
      const bool last_holder = holders_left == 1 && holders.contains(id);
      if (now[id] == 0 || last_holder) continue;
      if (worst == nullptr || against(id) >= against(*worst)) worst = &id;
    }
    CHECK(worst != nullptr, "one end of each link is not the last holder");
    evicted.insert(*worst);
    if (holders.contains(*worst)) --holders_left;
    std::erase_if(uncovered, [&](const BrokenLink& link) {
      return link.first == *worst || link.second == *worst;
    });
  }
  return evicted;
}

bool KeepsBreaking(std::span<const TimePoint> breaks) {
  const std::size_t count = breaks.size();
  return (count >= 2 && breaks[count - 1] - breaks[count - 2] < kBreaksAgain) ||
         (count >= 3 && breaks[count - 1] - breaks[count - 3] < kBreaksTwice);
}

}  // namespace pliant
