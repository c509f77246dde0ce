#include "operator/web/timeline_recorder.h"

#include <utility>

namespace pliant::web {

TimelineRecorder::TimelineRecorder(EventLoop& control, std::function<history::WallTime()> now,
                                   Observe observe, Sink sink)
    : state_(new State{.control = control,
                       .now = std::move(now),
                       .observe = std::move(observe),
                       .sink = std::move(sink),
                       .passed = control.Now()}) {
  Look(state_);
}

void TimelineRecorder::Look(const std::shared_ptr<State>& state) {
  const history::WallTime now = state->now();
  auto observations = state->observe(now);
  const TimePoint here = state->control.Now();
  if (!observations.empty() || here - state->passed >= kQuiet) {
    state->passed = here;
    state->sink(now, std::move(observations));
  }
  state->control.PostAfter(kPeriod, [weak = std::weak_ptr(state)] {
    if (const auto still = weak.lock()) Look(still);
  });
}

}  // namespace pliant::web
