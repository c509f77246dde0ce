#include "trainer/protocol/early_frames.h"

#include <utility>

#include "trainer/protocol/state_transfer.h"

namespace pliant {
namespace {

// Several memberships may be tried while this learner is busy with an earlier one.
constexpr std::size_t kMaxOpenings = 8;
// The running tick, the next one, and an allowance for ticks that overlap at their ends.
constexpr std::size_t kMaxTicks = 4;

}  // namespace

bool EarlyFrames::Hold(std::shared_ptr<const LearnerId> peer, Frame frame,
                       bool of_membership_to_come) {
  Limits& bytes = bytes_[*peer];
  std::size_t& held = of_membership_to_come ? bytes.openings : bytes.ticks;
  held += kFrameBytes + frame.payload.view.size();
  if (held <= (of_membership_to_come ? limits_.openings : limits_.ticks)) {
    frames_.push_back({.peer = std::move(peer), .frame = std::move(frame)});
    return true;
  }
  std::erase_if(frames_, [&](const Held& other) { return *other.peer == *peer; });
  bytes = {};
  return false;
}

std::vector<EarlyFrames::Held> EarlyFrames::TakeAll() {
  for (auto& [peer, bytes] : bytes_) bytes = {};
  return std::exchange(frames_, {});
}

EarlyFrames::Limits LimitsFor(const SizesOfJob& sizes) {
  // Until all members have arrived, a peer sends its state summary and the batches of a state that
  // may be in flight.
  const std::size_t openings = kMaxOpenings * static_cast<std::size_t>(kBatchesUnderWay) *
                               (sizes.state_batch_bytes + kStatePieceBytes);
  // For each tick a peer sends its pieces of the root, and this learner's share of each node that
  // the peer computed: at most half of it when there are two learners.
  const std::size_t tick = sizes.gradient_bytes + sizes.buffer_bytes;
  return {.openings = openings,
          .ticks = openings + (sizes.logical_shards / 2 + sizes.ticks_ahead + kMaxTicks) * tick};
}

}  // namespace pliant
