#pragma once

#include <cstdint>
#include <functional>
#include <memory>

#include "base/result.h"
#include "trainer/checkpoint/state_copy.h"
#include "trainer/collective/peer_transport.h"

namespace pliant {

// Committed state from one learner to another, tensor by tensor in slices. Both have the same
// tensors: they run the same program.
inline constexpr std::size_t kStateSliceBytes = std::size_t{4} << 20;
inline constexpr std::uint32_t kFirstStateFrame = 1;

// Calls `send` with all frames of `state`, without copying it: header.bucket is the tensor, piece
// the slice; the first frame has kFirstStateFrame as node, the last one the number of tensors as
// bucket and no payload.
void SendState(MembershipId membership, Tick applied_ticks, std::shared_ptr<const StateCopy> state,
               const std::function<void(Frame)>& send);

// Puts the slices together.
class StateReceiver {
 public:
  // `shape`: a state of the same tensors.
  explicit StateReceiver(const StateDict& shape);

  // kInvalid when it does not fit. Frames come in the order sent.
  Status OnFrame(const Frame& frame);
  bool done() const { return done_; }
  Tick applied_ticks() const { return applied_ticks_; }
  std::shared_ptr<const StateCopy> Take() { return std::move(state_); }

 private:
  std::shared_ptr<StateCopy> state_;
  std::size_t tensor_ = 0;  // the one under way
  std::size_t offset_ = 0;  // in it
  Tick applied_ticks_ = 0;
  bool done_ = false;
};

}  // namespace pliant
