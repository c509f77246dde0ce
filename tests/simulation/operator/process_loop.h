#pragma once

#include <functional>
#include <map>

#include "base/event_loop.h"

namespace pliant::operator_sim {

// The event loop of one process in the world's loop. It can be stopped and continued (SIGSTOP,
// SIGCONT), and its remaining tasks are dropped with the process.
class ProcessLoop final : public EventLoop {
 public:
  explicit ProcessLoop(EventLoop& world) : world_(world) {}
  ~ProcessLoop() override;
  ProcessLoop(const ProcessLoop&) = delete;
  ProcessLoop& operator=(const ProcessLoop&) = delete;

  TimePoint Now() const override { return world_.Now(); }
  void Post(std::function<void()> task) override { PostAfter(Duration::zero(), std::move(task)); }
  TimerId PostAfter(Duration delay, std::function<void()> task) override;
  void Cancel(TimerId timer) override;

  // Tasks that are due before `time` run at `time`.
  void StopUntil(TimePoint time) { stopped_until_ = time; }

 private:
  void Run(TimerId timer);

  struct Task {
    TimerId world_timer = 0;
    std::function<void()> run;
  };

  EventLoop& world_;
  TimePoint stopped_until_{};
  TimerId last_timer_ = 0;
  std::map<TimerId, Task> tasks_;
};

}  // namespace pliant::operator_sim
