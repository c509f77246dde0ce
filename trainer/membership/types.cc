#include "trainer/membership/types.h"

#include <algorithm>
#include <set>
#include <string_view>
#include <utility>

#include "base/format.h"

namespace pliant {

std::string ToString(const LearnerId& id) {
  const auto nonce = static_cast<std::uint32_t>(id.nonce);
  return id.local_rank == 0 ? Format("{}/{:08x}", id.name, nonce)
                            : Format("{}/{:08x}.{}", id.name, nonce, id.local_rank);
}

bool SameLearner(const LearnerId& a, const LearnerId& b) {
  return a.name == b.name && a.pod_uid == b.pod_uid && a.nonce == b.nonce;
}

std::string ToString(MembershipId id) { return Format("{}.{}", id.term, id.counter); }

std::optional<int> Membership::RankOf(const LearnerId& learner) const {
  const auto found = std::ranges::find(members, learner, &Member::id);
  if (found == members.end()) return std::nullopt;
  return static_cast<int>(found - members.begin());
}

int Membership::learners() const {
  std::set<std::pair<std::string_view, std::string_view>> pods;
  for (const Member& member : members) pods.emplace(member.id.name, member.id.pod_uid);
  return static_cast<int>(pods.size());
}

}  // namespace pliant
