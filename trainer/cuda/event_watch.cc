#include "trainer/cuda/event_watch.h"

#include <utility>

#include "trainer/cuda/polling.h"

namespace pliant {

EventWatch::EventWatch(std::shared_ptr<const CudaDriver> driver, CudaContext context)
    : driver_(std::move(driver)),
      context_(context),
      events_(std::in_place, driver_),
      thread_([this](const std::stop_token& stop) { Run(stop); }) {}

EventWatch::~EventWatch() {
  thread_.request_stop();
  thread_.join();
  const CurrentCudaContext current(*driver_, context_);
  for (const Waiting& waiting : waiting_)
    if (waiting.event != nullptr) events_->Return(waiting.event);
  events_.reset();
}

void EventWatch::Await(CudaStream stream, std::function<void(Status)> done) {
  Waiting waiting{.done = std::move(done)};
  if (const Result<CudaEvent> event = events_->Record(stream)) {
    waiting.event = *event;
  } else {
    waiting.recorded = std::unexpected(event.error());
  }
  {
    const std::lock_guard lock(mutex_);
    waiting_.push_back(std::move(waiting));
  }
  changed_.notify_all();
}

void EventWatch::Drop() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return !calling_; });
  for (const Waiting& waiting : waiting_)
    if (waiting.event != nullptr) events_->Return(waiting.event);
  waiting_.clear();
}

std::optional<Status> EventWatch::StatusOf(const Waiting& waiting) const {
  if (!waiting.recorded) return waiting.recorded;
  return events_->Reached(waiting.event, "work on the device");
}

void EventWatch::Run(const std::stop_token& stop) {
  SleepPrecisely();
  const CurrentCudaContext current(*driver_, context_);
  std::unique_lock lock(mutex_);
  while (changed_.wait(lock, stop, [this] { return !waiting_.empty(); })) {
    const std::optional<Status> status =
        current.status() ? StatusOf(waiting_.front()) : current.status();
    if (!status) {
      lock.unlock();
      std::this_thread::sleep_for(kDevicePoll);
      lock.lock();
      continue;
    }
    const Waiting over = std::move(waiting_.front());
    waiting_.pop_front();
    if (over.event != nullptr) events_->Return(over.event);
    calling_ = true;
    lock.unlock();
    over.done(*status);
    lock.lock();
    calling_ = false;
    changed_.notify_all();
  }
}

}  // namespace pliant
