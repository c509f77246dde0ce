#pragma once

#include "base/event_loop.h"

namespace pliant {

// How often a volume that cannot be read is tried again, in a row.
class VolumeRetry {
 public:
  static constexpr Duration kPause = std::chrono::seconds(1);

  // A try has failed. Whether there is to be another one, after the pause.
  bool OnFailed() { return ++failed_ < kMaxTries; }
  // It was read, or is done without.
  void Reset() { failed_ = 0; }

 private:
  static constexpr int kMaxTries = 10;

  int failed_ = 0;
};

}  // namespace pliant
