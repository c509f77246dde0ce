#include "trainer/membership/departures.h"

#include <chrono>

namespace pliant {
namespace {

// A learner that no plan has listed yet is not dismissed before this time: a pod may start before
// the plan that lists it arrives.
constexpr Duration kUnlistedGrace = std::chrono::seconds(30);

}  // namespace

bool InUse(const LearnerId& id, const MembershipHistory& history, const Proposer& proposer) {
  return history.Contains(id) || proposer.Proposes(id);
}

std::vector<Departure> FindDepartures(const Roster& roster, const MembershipHistory& history,
                                      const Proposer& proposer, TimePoint now) {
  std::vector<Departure> departures;
  if (!roster.plan()) return departures;
  for (const auto& [id, learner] : roster.learners()) {
    // Ranks leave together.
    const bool another_rank_leaves = !departures.empty() && SameLearner(departures.back().id, id);
    if (!learner.connected() || learner.gone()) continue;
    if (roster.Wanted(learner) && !another_rank_leaves) continue;
    const bool in_use = InUse(id, history, proposer);
    if (!in_use) {
      const Duration connected_for = now - learner.connection_changed_at;
      if (!learner.listed && connected_for < kUnlistedGrace) continue;
      // It is ahead of the current membership: it may leave only when the members have caught up.
      if (history.training() && learner.applied_ticks > history.furthest()) continue;
    }
    departures.push_back({.id = id, .at_once = !in_use});
  }
  return departures;
}

}  // namespace pliant
