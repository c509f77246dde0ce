#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <vector>

#include "trainer/collective/peer_transport.h"
#include "trainer/membership/types.h"

namespace pliant {

// Frames that arrived early: for memberships that this learner has not entered, and for ticks of
// its own membership that it has not reached. A peer can send only a limited amount ahead, because
// it soon needs an answer to continue. A peer that sends more has a bug, or tries to fill this
// learner's memory.
class EarlyFrames {
 public:
  struct Held {
    std::shared_ptr<const LearnerId> peer;
    Frame frame;
  };
  // Limits for one peer, in bytes.
  struct Limits {
    std::size_t openings = 0;  // for later memberships
    std::size_t ticks = 0;     // for the current one
  };
  static constexpr std::size_t kFrameBytes = 256;  // counted per frame, besides its payload

  explicit EarlyFrames(Limits limits) : limits_(limits) {}

  // Returns false if the peer exceeds a limit; all its frames are then dropped.
  bool Hold(std::shared_ptr<const LearnerId> peer, Frame frame, bool of_membership_to_come);
  // In order of arrival.
  const std::vector<Held>& frames() const { return frames_; }
  std::vector<Held> TakeAll();

 private:
  const Limits limits_;
  std::vector<Held> frames_;
  // Held bytes by peer. Entries stay, so that each peer is allocated once.
  std::map<LearnerId, Limits> bytes_;
};

// The sizes that determine the limits.
struct SizesOfJob {
  std::size_t gradient_bytes = 0;
  std::size_t buffer_bytes = 0;  // the model's buffers
  std::size_t logical_shards = 1;
  std::size_t ticks_ahead = 0;        // by which others may be ahead of one that catches up
  std::size_t state_batch_bytes = 0;  // as in LearnerOptions
};
EarlyFrames::Limits LimitsFor(const SizesOfJob& sizes);

}  // namespace pliant
