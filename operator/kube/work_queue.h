#pragma once

#include <cstddef>
#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <set>

#include "base/event_loop.h"
#include "operator/kube/object.h"

namespace pliant::kube {

// Callbacks for metrics; each may be empty.
struct WorkQueueObserver {
  std::function<void()> on_add;
  std::function<void(Duration waited)> on_take;  // from Add to Take
  std::function<void(Duration worked)> on_done;  // from Take to Done
};

// A work queue of keys to reconcile. A key is in it once, however often it is added. A key that is
// being processed is not handed out again before Done; if it was added meanwhile, Done requeues it.
// One thread (the control thread); slow work happens between Take and Done.
class WorkQueue {
 public:
  // `on_ready` runs as a separate task after keys were added, once for many keys; it must take all
  // of them. `loop` outlives the queue.
  WorkQueue(EventLoop& loop, std::function<void()> on_ready, WorkQueueObserver observer = {});
  ~WorkQueue();
  WorkQueue(const WorkQueue&) = delete;
  WorkQueue& operator=(const WorkQueue&) = delete;

  void Add(const NamespacedName& key);
  // If a key has several delays, the shortest counts.
  void AddAfter(const NamespacedName& key, Duration delay);
  // Cancels what AddAfter scheduled for the key.
  void CancelDelay(const NamespacedName& key);

  std::optional<NamespacedName> Take();
  void Done(const NamespacedName& key);

  std::size_t depth() const { return queue_.size(); }
  std::size_t working() const { return processing_.size(); }

 private:
  struct Delayed {
    TimePoint due;
    TimerId timer = 0;
  };

  void Enqueue(const NamespacedName& key);
  void AnnounceReady();

  EventLoop& loop_;
  const std::function<void()> on_ready_;
  const WorkQueueObserver observer_;

  std::deque<NamespacedName> queue_;                // in order of arrival; each key once
  std::map<NamespacedName, TimePoint> dirty_;       // added at; queued unless processing
  std::map<NamespacedName, TimePoint> processing_;  // taken at
  std::map<NamespacedName, Delayed> delayed_;
  TimerId ready_timer_ = 0;  // not 0 while on_ready_ is posted
};

}  // namespace pliant::kube
