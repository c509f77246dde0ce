#pragma once

#include <optional>
#include <span>

#include "trainer/collective/communicators.h"

namespace pliant {

// A member's readiness to exchange gradients in rounds, in its trailers. None: it cannot, or does
// not want to for now.
struct RoundsReport {
  bool ready = false;  // it has the membership's communicator
  CommunicatorPartner partner;
  bool operator==(const RoundsReport&) const = default;
};

// All decide alike, because all have the same trailers. `by_rank`: of all members.
//
// Whether a communicator of these members is worth a try.
bool CanExchange(std::span<const std::optional<RoundsReport>> by_rank);
// Whether they exchange the gradient of the next step in rounds.
bool AllReady(std::span<const std::optional<RoundsReport>> by_rank);

}  // namespace pliant
