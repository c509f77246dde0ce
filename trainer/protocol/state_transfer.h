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

// Transfers committed state from one learner to another, tensor by tensor in pieces. Both have the
// same tensors, because they run the same program.
inline constexpr std::size_t kStatePieceBytes = std::size_t{4} << 20;

// While one batch is sent, the next is requested.
inline constexpr int kBatchesUnderWay = 2;

// Flags in header.node of kState frames. kLastOfBatch also marks a kStateRequest for the next
// batch.
inline constexpr std::uint32_t kFirstStateFrame = 1;
inline constexpr std::uint32_t kLastOfBatch = 2;  // the next batch is sent when it is requested

// Sends a state, or a slice of one, in batches, so that other frames need not wait for all of it.
// Nothing is copied: header.bucket is the tensor; the very last frame has the number of tensors as
// bucket and no payload.
class StateSender {
 public:
  using Send = std::function<void(Frame)>;

  StateSender(MembershipId membership, Tick applied_ticks, std::shared_ptr<const StateCopy> state);

  bool done() const { return done_; }
  // Sends this many bytes, or the rest if it is shorter.
  void SendBatch(std::size_t bytes, const Send& send);

 private:
  FrameHeader header_;  // of the next frame
  std::shared_ptr<const StateCopy> state_;
  std::size_t offset_ = 0;  // in the current tensor
  bool done_ = false;
};

// Assembles the pieces.
class StateReceiver {
 public:
  // Writes to `tensors`, which are borrowed.
  explicit StateReceiver(StateDict tensors) : tensors_(std::move(tensors)) {}

  // kInvalid if it does not fit. Frames arrive in the order sent.
  Status OnFrame(const Frame& frame);
  bool done() const { return done_; }
  Tick applied_ticks() const { return applied_ticks_; }

 private:
  StateDict tensors_;
  std::size_t tensor_ = 0;  // the current one
  std::size_t offset_ = 0;  // in the current tensor
  Tick applied_ticks_ = 0;
  bool done_ = false;
};

// Receives a state from several learners, one slice from each.
class SlicedStateReceiver {
 public:
  // `shape`: a state with the same tensors. Slice i comes from sources[i].
  SlicedStateReceiver(const StateDict& shape, const std::vector<int>& sources);

  Status OnFrame(int source, const Frame& frame);
  bool done() const;
  std::shared_ptr<const StateCopy> Take() { return std::move(state_); }

 private:
  std::shared_ptr<StateCopy> state_;
  std::map<int, StateReceiver> slice_of_;  // by source
};

}  // namespace pliant
