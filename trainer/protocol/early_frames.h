#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <vector>

#include "trainer/collective/peer_transport.h"
#include "trainer/membership/types.h"

namespace pliant {

// Frames that came before their time: of memberships that this learner has not entered, and of
// ticks of its own that it has not come to. A peer can have only so much to say ahead, for it soon
// needs an answer to go on; who sends more counts wrongly, or wants to fill this one's memory.
class EarlyFrames {
 public:
  struct Held {
    std::shared_ptr<const LearnerId> peer;
    Frame frame;
  };
  // Of one peer, in bytes.
  struct Limits {
    std::size_t openings = 0;  // of memberships to come
    std::size_t ticks = 0;     // of the present one
  };
  static constexpr std::size_t kFrameBytes = 256;  // that a frame counts beside its payload

  explicit EarlyFrames(Limits limits) : limits_(limits) {}

  // False: it is too much of this peer, of which nothing is held now.
  bool Hold(std::shared_ptr<const LearnerId> peer, Frame frame, bool of_membership_to_come);
  // In the order they came.
  const std::vector<Held>& frames() const { return frames_; }
  std::vector<Held> TakeAll();

 private:
  const Limits limits_;
  std::vector<Held> frames_;
  std::map<LearnerId, Limits> bytes_;  // held, by peer: who was met stays, so that it costs once
};

// What the limits follow from.
struct SizesOfJob {
  std::size_t gradient_bytes = 0;
  std::size_t buffer_bytes = 0;  // of the model
  std::size_t logical_shards = 1;
  std::size_t ticks_ahead = 0;        // that others may be of one that catches up
  std::size_t state_batch_bytes = 0;  // as in LearnerOptions
};
EarlyFrames::Limits LimitsFor(const SizesOfJob& sizes);

}  // namespace pliant
