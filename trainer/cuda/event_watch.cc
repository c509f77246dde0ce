#include "trainer/cuda/event_watch.h"

#include <utility>

#include "trainer/cuda/polling.h"

namespace pliant {

EventWatch::EventWatch(std::shared_ptr<const CudaDriver> driver, CudaContext context)
    : driver_(std::move(driver)),
      context_(context),
      thread_([this](const std::stop_token& stop) { Run(stop); }) {}

EventWatch::~EventWatch() {
  thread_.request_stop();
  thread_.join();
  const CurrentCudaContext current(*driver_, context_);
  for (const Waiting& waiting : waiting_) spare_.push_back(waiting.event);
  for (const CudaEvent event : spare_)
    if (event != nullptr) driver_->event_destroy(event);
}

Result<CudaEvent> EventWatch::TakeEvent() {
  {
    const std::lock_guard lock(mutex_);
    if (!spare_.empty()) {
      const CudaEvent event = spare_.back();
      spare_.pop_back();
      return event;
    }
  }
  CudaEvent event = nullptr;
  RETURN_IF_ERROR(driver_->Check(driver_->event_create(&event, kCudaEventWithoutTime), "an event"));
  return event;
}

void EventWatch::Await(CudaStream stream, std::function<void(Status)> done) {
  Waiting waiting{.done = std::move(done)};
  if (const Result<CudaEvent> event = TakeEvent()) {
    waiting.event = *event;
    waiting.recorded = driver_->Check(driver_->event_record(*event, stream), "cuEventRecord");
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
    if (waiting.event != nullptr) spare_.push_back(waiting.event);
  waiting_.clear();
}

bool EventWatch::IsOver(const Waiting& waiting, Status& status) const {
  status = waiting.recorded;
  if (!status) return true;
  const int result = driver_->event_query(waiting.event);
  if (result == kCudaNotReady) return false;
  status = driver_->Check(result, "work on the device");
  return true;
}

void EventWatch::Run(const std::stop_token& stop) {
  SleepPrecisely();
  const CurrentCudaContext current(*driver_, context_);
  std::unique_lock lock(mutex_);
  while (changed_.wait(lock, stop, [this] { return !waiting_.empty(); })) {
    Status status = current.status();
    if (status && !IsOver(waiting_.front(), status)) {
      lock.unlock();
      std::this_thread::sleep_for(kDevicePoll);
      lock.lock();
      continue;
    }
    const Waiting over = std::move(waiting_.front());
    waiting_.pop_front();
    if (over.event != nullptr) spare_.push_back(over.event);
    calling_ = true;
    lock.unlock();
    over.done(std::move(status));
    lock.lock();
    calling_ = false;
    changed_.notify_all();
  }
}

}  // namespace pliant
