#pragma once

#include <memory>
#include <utility>
#include <vector>

#include "trainer/protocol/state_transfer.h"

namespace pliant {

// All frames of a state, or of a slice of one, in the order of a sender.
inline std::vector<Frame> StateFrames(MembershipId membership, Tick applied_ticks,
                                      std::shared_ptr<const StateCopy> state) {
  std::vector<Frame> frames;
  StateSender sender(membership, applied_ticks, std::move(state));
  while (!sender.done()) {
    sender.SendBatch(kStatePieceBytes, [&](Frame frame) { frames.push_back(std::move(frame)); });
  }
  return frames;
}

}  // namespace pliant
