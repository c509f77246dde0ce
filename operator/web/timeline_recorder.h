#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "base/event_loop.h"
#include "operator/history/observe.h"

namespace pliant::web {

// Looks at the stores twice a second, and passes on what may have changed.
class TimelineRecorder {
 public:
  static constexpr Duration kPeriod = std::chrono::milliseconds(500);
  // Without changes readers get the time this often.
  static constexpr Duration kQuiet = std::chrono::seconds(5);

  using Observe = std::function<std::vector<history::Observation>(history::WallTime now)>;
  using Sink = std::function<void(history::WallTime now, std::vector<history::Observation>)>;

  // Call on the loop's thread, or before the loop runs. `control` outlives this or no longer runs.
  // All functions are called on its thread.
  TimelineRecorder(EventLoop& control, std::function<history::WallTime()> now, Observe observe,
                   Sink sink);

 private:
  struct State {
    EventLoop& control;
    const std::function<history::WallTime()> now;
    const Observe observe;
    const Sink sink;
    TimePoint passed{};  // when the sink was last called
  };
  static void Look(const std::shared_ptr<State>& state);

  const std::shared_ptr<State> state_;
};

}  // namespace pliant::web
