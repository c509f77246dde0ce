#pragma once

#include <optional>

#include "trainer/membership/messages.h"
#include "trainer/membership/plan.h"
#include "trainer/membership/roster.h"

namespace pliant {

struct Refusal {
  Problem problem;
  bool lists_learner = false;  // progress shows the learner as refused
  bool operator==(const Refusal&) const = default;
};

// Checks a learner against the connected ones; none: it may take part.
std::optional<Refusal> CheckAdmission(const Roster& roster, const Hello& hello);

}  // namespace pliant
