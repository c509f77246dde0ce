#pragma once

#include "base/event_loop.h"

namespace pliant {

// Limits how often in a row an unreadable volume is tried again.
class VolumeRetry {
 public:
  static constexpr Duration kPause = std::chrono::seconds(1);

  // A try has failed. Returns whether to try again after the pause.
  bool OnFailed() { return ++failed_ < kMaxTries; }
  // The volume was read, or the learner continues without it.
  void Reset() { failed_ = 0; }

 private:
  static constexpr int kMaxTries = 10;

  int failed_ = 0;
};

}  // namespace pliant
