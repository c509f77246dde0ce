#pragma once

#include <boost/asio/io_context.hpp>
#include <functional>
#include <memory>
#include <unordered_map>

#include "base/event_loop.h"

namespace pliant {

// An asio io_context as event loop: servers and connections of the same thread use `context()`.
class RealEventLoop final : public EventLoop {
 public:
  RealEventLoop();
  ~RealEventLoop() override;

  TimePoint Now() const override;
  void Post(std::function<void()> task) override;
  TimerId PostAfter(Duration delay, std::function<void()> task) override;
  void Cancel(TimerId timer) override;

  // Runs tasks on the calling thread until Stop; from then on that is the loop's thread.
  void Run();
  // Makes Run return after the running task. Called from any thread.
  void Stop();

  boost::asio::io_context& context() { return context_; }

 private:
  struct Timer;

  boost::asio::io_context context_{1};
  TimerId last_timer_ = 0;
  std::unordered_map<TimerId, std::unique_ptr<Timer>> timers_;
};

}  // namespace pliant
