#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <string>

#include "base/event_loop.h"

namespace pliant::web {

// What a loop said of itself last: for others to tell whether it still moves.
struct Pulse {
  TimePoint at{};
  std::string not_ready;  // why it is not ready; "" if it is
};

// Asks a loop every second.
class LoopPulse {
 public:
  static constexpr Duration kPeriod = std::chrono::seconds(1);

  // On the loop's thread, or before the loop runs. `loop` outlives this or runs no more.
  // `not_ready` is called on its thread.
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
