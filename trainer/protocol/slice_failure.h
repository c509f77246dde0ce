#pragma once

#include "base/result.h"
#include "trainer/collective/peer_transport.h"

namespace pliant {

// A member could not write its slice of the checkpoint of this tick.
struct SliceFailure {
  Tick tick = 0;
  Error error;
};

// For rank 0 of `membership`.
Frame EncodeSliceFailure(MembershipId membership, const SliceFailure& failure);
// Of a kSliceFailed frame. Whatever it says is taken; an error that is too long is cut at its
// beginning, because its end says what is wrong with the volume.
SliceFailure DecodeSliceFailure(const Frame& frame);

}  // namespace pliant
