#include "operator/kube/work_queue.h"

#include <utility>

#include "base/check.h"

namespace pliant::kube {

WorkQueue::WorkQueue(EventLoop& loop, std::function<void()> on_ready, WorkQueueObserver observer)
    : loop_(loop), on_ready_(std::move(on_ready)), observer_(std::move(observer)) {}

WorkQueue::~WorkQueue() {
  for (const auto& [key, delayed] : delayed_) loop_.Cancel(delayed.timer);
  loop_.Cancel(ready_timer_);
}

void WorkQueue::Add(const NamespacedName& key) {
  if (!dirty_.emplace(key, loop_.Now()).second) return;
  if (observer_.on_add) observer_.on_add();
  if (!processing_.contains(key)) Enqueue(key);
}

void WorkQueue::AddAfter(const NamespacedName& key, Duration delay) {
  if (delay <= Duration::zero()) {
    Add(key);
    return;
  }
  const TimePoint due = loop_.Now() + delay;
  if (const auto waiting = delayed_.find(key); waiting != delayed_.end()) {
    if (waiting->second.due <= due) return;
    loop_.Cancel(waiting->second.timer);
  }
  const TimerId timer = loop_.PostAfter(delay, [this, key] {
    delayed_.erase(key);
    Add(key);
  });
  delayed_.insert_or_assign(key, Delayed{due, timer});
}

void WorkQueue::CancelDelay(const NamespacedName& key) {
  if (const auto delayed = delayed_.extract(key)) loop_.Cancel(delayed.mapped().timer);
}

std::optional<NamespacedName> WorkQueue::Take() {
  if (queue_.empty()) return std::nullopt;
  NamespacedName key = std::move(queue_.front());
  queue_.pop_front();
  const TimePoint now = loop_.Now();
  const auto wanted = dirty_.extract(key);
  if (observer_.on_take) observer_.on_take(now - wanted.mapped());
  processing_.emplace(key, now);
  return key;
}

void WorkQueue::Done(const NamespacedName& key) {
  const auto worked = processing_.extract(key);
  CHECK(!worked.empty(), "only what was taken can be done");
  if (observer_.on_done) observer_.on_done(loop_.Now() - worked.mapped());
  if (dirty_.contains(key)) Enqueue(key);
}

void WorkQueue::Enqueue(const NamespacedName& key) {
  queue_.push_back(key);
  AnnounceReady();
}

void WorkQueue::AnnounceReady() {
  if (ready_timer_ != 0) return;
  ready_timer_ = loop_.PostAfter(Duration::zero(), [this] {
    ready_timer_ = 0;
    on_ready_();
  });
}

}  // namespace pliant::kube
