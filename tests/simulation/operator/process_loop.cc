#include "tests/simulation/operator/process_loop.h"

#include <utility>

namespace pliant::operator_sim {

ProcessLoop::~ProcessLoop() {
  for (const auto& [timer, task] : tasks_) world_.Cancel(task.world_timer);
}

TimerId ProcessLoop::PostAfter(Duration delay, std::function<void()> task) {
  const TimerId timer = ++last_timer_;
  tasks_[timer] = {.world_timer = world_.PostAfter(delay, [this, timer] { Run(timer); }),
                   .run = std::move(task)};
  return timer;
}

void ProcessLoop::Cancel(TimerId timer) {
  const auto found = tasks_.find(timer);
  if (found == tasks_.end()) return;
  world_.Cancel(found->second.world_timer);
  tasks_.erase(found);
}

void ProcessLoop::Run(TimerId timer) {
  if (world_.Now() < stopped_until_) {
    tasks_.at(timer).world_timer =
        world_.PostAfter(stopped_until_ - world_.Now(), [this, timer] { Run(timer); });
    return;
  }
  const auto task = tasks_.extract(timer);
  task.mapped().run();
}

}  // namespace pliant::operator_sim
