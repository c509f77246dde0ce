#pragma once

#include "base/result.h"
#include "trainer/collective/peer_transport.h"

namespace pliant {

// A member could not write its slice of the checkpoint of this tick.
struct SliceFailure {
  Tick tick = 0;
  Error error;
};

// The frame goes to rank 0 of `membership`.
Frame EncodeSliceFailure(MembershipId membership, const SliceFailure& failure);
// Decodes a kSliceFailed frame; any content is accepted. The beginning of a long error is cut off,
// because its end names the fault of the volume.
SliceFailure DecodeSliceFailure(const Frame& frame);

}  // namespace pliant
