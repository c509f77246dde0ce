#pragma once

#include <cstdint>
#include <optional>

#include "base/event_loop.h"
#include "trainer/membership/messages.h"

namespace pliant {

// What a learner has done since its process began, for metrics. Everything but `member` only grows.
struct LearnerStats {
  bool member = false;               // takes part in a membership now
  std::uint64_t ticks = 0;           // that it took part in, steps and evaluations
  std::uint64_t shards = 0;          // of them, that it computed
  std::uint64_t steps = 0;           // optimizer steps that it took part in
  std::uint64_t samples = 0;         // of them, that it computed
  std::uint64_t ticks_given_up = 0;  // because a peer was lost
  std::uint64_t shards_kept = 0;     // of `shards`: finished before their tick was given up
  // Where the time of its ticks went.
  Duration computing{};     // its shards
  Duration data_waiting{};  // of that, for their samples
  Duration waiting{};       // for what others compute
  Duration committing{};    // the optimizer
  Duration pausing{};       // between the last commit in a membership and the first in the next
  std::uint64_t bytes_sent = 0;  // to peers
  std::uint64_t bytes_received = 0;
  std::uint64_t checkpoints = 0;
  std::uint64_t checkpoints_failed = 0;
  Duration saving{};  // them, beside the training
};

// A tick's, over those between `then` and `now`. None: there were none.
std::optional<TickTimes> MeanTimes(const LearnerStats& then, const LearnerStats& now);

}  // namespace pliant
