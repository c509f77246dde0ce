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

// For metrics; each may be empty.
struct WorkQueueObserver {
  std::function<void()> on_add;
  std::function<void(Duration waited)> on_take;  // from Add to Take
  std::function<void(Duration worked)> on_done;  // from Take to Done
};

// Keys that want a look. A key stands in it once, however often it is added; a key that is being
// worked on is not handed out again before Done, and is queued again then if it was added
// meanwhile. One thread (the control thread); what takes long lies between Take and Done.
class WorkQueue {
 public:
  // `on_ready` runs as a task of its own after keys came in, once for many; it takes all that there
  // are. `loop` outlives the queue.
  WorkQueue(EventLoop& loop, std::function<void()> on_ready, WorkQueueObserver observer = {});
  ~WorkQueue();
  WorkQueue(const WorkQueue&) = delete;
  WorkQueue& operator=(const WorkQueue&) = delete;

  void Add(const NamespacedName& key);
  // Of several delays of one key the shortest counts.
  void AddAfter(const NamespacedName& key, Duration delay);
  // What AddAfter has put off comes no more.
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
  std::map<NamespacedName, TimePoint> dirty_;       // wants a look since; queued unless processing
  std::map<NamespacedName, TimePoint> processing_;  // taken when
  std::map<NamespacedName, Delayed> delayed_;
  TimerId ready_timer_ = 0;  // on_ready_ is posted
};

}  // namespace pliant::kube
