#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "base/result.h"
#include "trainer/checkpoint/state_copy.h"
#include "trainer/collective/peer_transport.h"

namespace pliant {

// Committed state from one learner to another, tensor by tensor in pieces. Both have the same
// tensors: they run the same program.
inline constexpr std::size_t kStatePieceBytes = std::size_t{4} << 20;

// While one travels the next is asked for.
inline constexpr int kBatchesUnderWay = 2;

// In header.node of kState frames, and the second of a kStateRequest for what comes next.
inline constexpr std::uint32_t kFirstStateFrame = 1;
inline constexpr std::uint32_t kLastOfBatch = 2;  // what comes next is sent when it is asked for

// Sends a state, or a slice of one, in batches, so that what is sent meanwhile need not wait for
// the whole of it. Nothing is copied: header.bucket is the tensor; the last frame of all has
// the number of tensors as bucket and no payload.
class StateSender {
 public:
  using Send = std::function<void(Frame)>;

  StateSender(MembershipId membership, Tick applied_ticks, std::shared_ptr<const StateCopy> state);

  bool done() const { return done_; }
  // So many bytes, or all that is left.
  void SendBatch(std::size_t bytes, const Send& send);

 private:
  FrameHeader header_;  // of the next frame
  std::shared_ptr<const StateCopy> state_;
  std::size_t offset_ = 0;  // in the tensor under way
  bool done_ = false;
};

// Puts the pieces together.
class StateReceiver {
 public:
  // Into `tensors`, which are borrowed.
  explicit StateReceiver(StateDict tensors) : tensors_(std::move(tensors)) {}

  // kInvalid when it does not fit. Frames come in the order sent.
  Status OnFrame(const Frame& frame);
  bool done() const { return done_; }
  Tick applied_ticks() const { return applied_ticks_; }

 private:
  StateDict tensors_;
  std::size_t tensor_ = 0;  // the one under way
  std::size_t offset_ = 0;  // in it
  Tick applied_ticks_ = 0;
  bool done_ = false;
};

// The same from several learners, each its slice of the state.
class SlicedStateReceiver {
 public:
  // `shape`: a state of the same tensors. Slice i comes from sources[i].
  SlicedStateReceiver(const StateDict& shape, const std::vector<int>& sources);

  Status OnFrame(int source, const Frame& frame);
  bool done() const;
  std::shared_ptr<const StateCopy> Take() { return std::move(state_); }

 private:
  std::shared_ptr<StateCopy> state_;
  std::map<int, StateReceiver> slice_of_;  // by source
};

}  // namespace pliant
