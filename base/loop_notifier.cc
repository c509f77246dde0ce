#include "base/loop_notifier.h"

#include <atomic>
#include <utility>

#include "base/event_loop.h"

namespace pliant {

struct LoopNotifier::State {
  explicit State(std::function<void()> task) : on_notify(std::move(task)) {}

  const std::function<void()> on_notify;
  std::atomic<bool> notified = false;
  bool ended = false;  // used on the loop's thread only
};

LoopNotifier::LoopNotifier(EventLoop& loop, std::function<void()> on_notify)
    : loop_(loop), state_(std::make_shared<State>(std::move(on_notify))) {}

void LoopNotifier::Notify() {
  if (state_->notified.exchange(true)) return;
  loop_.Post([state = state_] {
    state->notified = false;
    if (!state->ended) state->on_notify();
  });
}

LoopNotifier::~LoopNotifier() { state_->ended = true; }

}  // namespace pliant
