#pragma once

#include <algorithm>
#include <chrono>
#include <optional>

#include "base/event_loop.h"

namespace pliant::controller {

// Decides when the next round, which plans all jobs, is due. A change waits for others: `debounce`
// after the newest and at most `max_debounce` after the first. After a round there is a pause as
// long as the round took, so that the control thread has time for other work. A change after a
// quiet time waits for no more than that. After rounds have followed each other for `flood_after`,
// the pause is `pauses_in_flood` times as long, but `max_flood_pause` is enough: in a flood of
// changes the time of a round is better spent on requests to the API server, often on the same
// machine, and each round plans more of the changes.
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

  // Something has changed. Returns when the round is due.
  TimePoint OnChange(TimePoint now) {
    if (!first_change_) first_change_ = now;
    const TimePoint settled =
        std::min(now + options_.debounce, *first_change_ + options_.max_debounce);
    return std::max({now, settled, pause_ends_});
  }

  // The round begins: changes from now on are for the next.
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
