#pragma once

#include <vector>

#include "base/event_loop.h"
#include "trainer/membership/membership_history.h"
#include "trainer/membership/proposer.h"
#include "trainer/membership/roster.h"
#include "trainer/membership/types.h"

namespace pliant {

// Whether a membership, current, superseded or proposed, may need the learner.
bool InUse(const LearnerId& id, const MembershipHistory& history, const Proposer& proposer);

struct Departure {
  LearnerId id;
  bool at_once = false;  // nothing depends on it; otherwise it leaves at the next boundary
  bool operator==(const Departure&) const = default;
};

// The connected learners that must leave: the plan does not want them, or they requested it.
std::vector<Departure> FindDepartures(const Roster& roster, const MembershipHistory& history,
                                      const Proposer& proposer, TimePoint now);

}  // namespace pliant
