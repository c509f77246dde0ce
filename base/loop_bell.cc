#include "base/loop_bell.h"

#include <atomic>
#include <utility>

#include "base/event_loop.h"

namespace pliant {

struct LoopBell::State {
  explicit State(std::function<void()> task) : on_ring(std::move(task)) {}

  const std::function<void()> on_ring;
  std::atomic<bool> rung = false;
  bool ended = false;  // loop's thread
};

LoopBell::LoopBell(EventLoop& loop, std::function<void()> on_ring)
    : loop_(loop), state_(std::make_shared<State>(std::move(on_ring))) {}

void LoopBell::Ring() {
  if (state_->rung.exchange(true)) return;
  loop_.Post([state = state_] {
    state->rung = false;
    if (!state->ended) state->on_ring();
  });
}

LoopBell::~LoopBell() { state_->ended = true; }

}  // namespace pliant
