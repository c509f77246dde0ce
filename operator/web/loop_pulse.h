#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <string>

#include "base/event_loop.h"

namespace pliant::web {

// The last sign of life of a loop, from which others see whether it still runs.
struct Pulse {
  TimePoint at{};
  std::string not_ready;  // why it is not ready; "" if it is ready
};

// Records a sign of life of a loop every second.
class LoopPulse {
 public:
  static constexpr Duration kPeriod = std::chrono::seconds(1);

  // Call on the loop's thread, or before the loop runs. `loop` outlives this or no longer runs.
  // `not_ready` is called on the loop's thread.
  LoopPulse(EventLoop& loop, std::function<std::string()> not_ready);

  // Any thread.
  Pulse last() const;

 private:
  struct State {
    EventLoop& loop;
    const std::function<std::string()> not_ready;
    mutable std::mutex mutex;
    Pulse last;  // guarded by mutex
  };
  static void Beat(const std::shared_ptr<State>& state);

  const std::shared_ptr<State> state_;
};

}  // namespace pliant::web
