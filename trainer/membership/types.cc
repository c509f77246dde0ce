#include "trainer/membership/types.h"

#include <algorithm>
#include <format>

namespace pliant {

std::string ToString(const LearnerId& id) {
  return std::format("{}/{:08x}", id.name, static_cast<std::uint32_t>(id.nonce));
}

std::string ToString(MembershipId id) { return std::format("{}.{}", id.term, id.counter); }

std::optional<int> Membership::RankOf(const LearnerId& learner) const {
  const auto found = std::ranges::find(members, learner, &Member::id);
  if (found == members.end()) return std::nullopt;
  return static_cast<int>(found - members.begin());
}

}  // namespace pliant
