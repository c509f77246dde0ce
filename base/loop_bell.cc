#include "base/loop_bell.h"

#include <atomic>
#include <utility>

#include "base/event_loop.h"

namespace pliant {

struct LoopBell::State : std::enable_shared_from_this<State> {
  explicit State(std::function<void()> task) : on_ring(std::move(task)) {}

  const std::function<void()> on_ring;
  std::atomic<bool> rung = false;
  bool ended = false;  // loop's thread
};

LoopBell::LoopBell(EventLoop& loop, std::function<void()> on_ring)
    : loop_(loop), state_(std::make_shared<State>(std::move(on_ring))) {}

void LoopBell::Ring() {
  if (state_->rung.exchange(true)) return;
  // A bare pointer: a task that owned something would take memory.
  loop_.Post([state = state_.get()] {
    const std::shared_ptr<State> living = state->shared_from_this();  // the bell may end in it
    state->rung = false;
    if (!state->ended) state->on_ring();
  });
}

LoopBell::~LoopBell() {
  state_->ended = true;
  // What is on its way comes before this, which keeps what it points to until then.
  if (state_->rung) loop_.Post([state = std::move(state_)] {});
}

}  // namespace pliant
