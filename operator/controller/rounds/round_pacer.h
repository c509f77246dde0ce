#pragma once

#include <algorithm>
#include <chrono>
#include <optional>

#include "base/event_loop.h"

namespace pliant::controller {

// When the next of the rounds is due in which all jobs are planned. A change waits for its fellows,
// so long after the newest and at most so long after the first; and between two rounds there is a
// pause as long as the first of them took, so that the control thread has time for others. A change
// that comes out of quiet waits for no more than that. Where rounds have followed each other for
// long, the pause is a few times as long: in a flood of changes what a round costs is better spent
// on what is asked of the API server, often on the same machine, and each round plans more of them;
// but a second is enough.
class RoundPacer {
 public:
  struct Options {
    Duration debounce = std::chrono::milliseconds(20);
    Duration max_debounce = std::chrono::milliseconds(200);
    Duration flood_after = std::chrono::seconds(3);
    int pauses_in_flood = 3;                             // times what the round took ...
    Duration max_flood_pause = std::chrono::seconds(1);  // ... unless it took longer than this
  };

  explicit RoundPacer(Options options) : options_(options) {}

  // Something has changed: when the round is due.
  TimePoint OnChange(TimePoint now) {
    if (!first_change_) first_change_ = now;
    const TimePoint settled =
        std::min(now + options_.debounce, *first_change_ + options_.max_debounce);
    return std::max({now, settled, pause_ends_});
  }

  // The round begins: what changes from now on is for the next.
  void OnRound() { first_change_.reset(); }
  void OnRoundDone(TimePoint began, TimePoint now) {
    if (began > pause_ends_ + options_.max_debounce) quiet_until_ = began;
    const Duration took = now - began;
    const bool flood = began - quiet_until_ >= options_.flood_after;
    const Duration longer = std::min(took * options_.pauses_in_flood, options_.max_flood_pause);
    pause_ends_ = now + (flood ? std::max(took, longer) : took);
  }

 private:
  const Options options_;
  std::optional<TimePoint> first_change_;  // since the last round began
  TimePoint pause_ends_{};
  TimePoint quiet_until_{};
};

}  // namespace pliant::controller
