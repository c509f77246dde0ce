#include "operator/web/loop_pulse.h"

#include <utility>

namespace pliant::web {

LoopPulse::LoopPulse(EventLoop& loop, std::function<std::string()> not_ready)
    : state_(new State{.loop = loop, .not_ready = std::move(not_ready), .mutex = {}, .last = {}}) {
  Beat(state_);
}

void LoopPulse::Beat(const std::shared_ptr<State>& state) {
  Pulse pulse{.at = state->loop.Now(), .not_ready = state->not_ready()};
  {
    const std::lock_guard lock(state->mutex);
    state->last = std::move(pulse);
  }
  state->loop.PostAfter(kPeriod, [weak = std::weak_ptr(state)] {
    if (const auto still = weak.lock()) Beat(still);
  });
}

Pulse LoopPulse::last() const {
  const std::lock_guard lock(state_->mutex);
  return state_->last;
}

}  // namespace pliant::web
