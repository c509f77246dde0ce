#include "base/real_event_loop.h"

#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <utility>

namespace pliant {

struct RealEventLoop::Timer {
  explicit Timer(boost::asio::io_context& context) : wait(context) {}
  boost::asio::steady_timer wait;
};

RealEventLoop::RealEventLoop() = default;

RealEventLoop::~RealEventLoop() = default;

TimePoint RealEventLoop::Now() const { return MonotonicNow(); }

void RealEventLoop::Post(std::function<void()> task) {
  boost::asio::post(context_, std::move(task));
}

TimerId RealEventLoop::PostAfter(Duration delay, std::function<void()> task) {
  const TimerId id = ++last_timer_;
  auto timer = std::make_unique<Timer>(context_);
  timer->wait.expires_after(delay);
  timer->wait.async_wait([this, id, task = std::move(task)](const boost::system::error_code&) {
    // A timer that fired and was cancelled before its handler ran is no longer in the map.
    if (timers_.erase(id) > 0) task();
  });
  timers_.emplace(id, std::move(timer));
  return id;
}

void RealEventLoop::Cancel(TimerId timer) { timers_.erase(timer); }

void RealEventLoop::Run() {
  const auto work = boost::asio::make_work_guard(context_);
  context_.run();
}

void RealEventLoop::Stop() { context_.stop(); }

}  // namespace pliant
