#include "trainer/protocol/early_frames.h"

#include <utility>

#include "trainer/protocol/state_transfer.h"

namespace pliant {
namespace {

// Several memberships may be tried while this learner is busy with the one before.
constexpr std::size_t kMaxOpenings = 8;
// The one under way, the next one, and what their ends overlap.
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
  // Until all members are there, they say what they hold, and send of a state what may be under
  // way.
  const std::size_t openings = kMaxOpenings * static_cast<std::size_t>(kBatchesUnderWay) *
                               (sizes.state_batch_bytes + kStatePieceBytes);
  // Of a tick a peer sends its pieces of the root, and of each node that it computed what goes to
  // this one: half of it at most, where they are two.
  const std::size_t tick = sizes.gradient_bytes + sizes.buffer_bytes;
  return {.openings = openings,
          .ticks = openings + (sizes.logical_shards / 2 + sizes.ticks_ahead + kMaxTicks) * tick};
}

}  // namespace pliant
