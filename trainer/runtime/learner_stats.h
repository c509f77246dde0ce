#pragma once

#include <cstdint>
#include <optional>

#include "base/event_loop.h"
#include "trainer/membership/messages.h"

namespace pliant {

// A learner's work since its process began, for metrics. Everything except `member` only grows.
struct LearnerStats {
  bool member = false;              // takes part in a membership now
  std::uint64_t ticks = 0;          // that it took part in: steps, and those of evaluations
  std::uint64_t shards = 0;         // that it computed in these ticks
  std::uint64_t steps = 0;          // optimizer steps that it took part in
  std::uint64_t samples = 0;        // that it computed in these steps
  std::uint64_t ticks_aborted = 0;  // aborted because a peer was lost
  std::uint64_t shards_kept = 0;    // part of `shards`: finished before their tick was aborted
  // Where the time of its ticks went.
  Duration computing{};     // its shards
  Duration data_waiting{};  // part of `computing`: waiting for samples
  Duration waiting{};       // for the other learners
  Duration committing{};    // in the optimizer
  Duration pausing{};       // between the last commit in a membership and the first in the next
  // Exchanges of gradients from device to device: see Carrier.
  std::uint64_t steps_in_rounds = 0;
  std::uint64_t communicators = 0;
  std::uint64_t communicators_failed = 0;
  std::uint64_t bytes_sent = 0;  // to peers
  std::uint64_t bytes_received = 0;
  std::uint64_t checkpoints = 0;
  std::uint64_t checkpoints_failed = 0;
  Duration saving{};  // writing checkpoints, in parallel with training
};

// Mean times of one tick between `then` and `now`. None: there was no tick.
std::optional<TickTimes> MeanTimes(const LearnerStats& then, const LearnerStats& now);

}  // namespace pliant
