#pragma once

#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "base/mailbox.h"

namespace pliant {

// Threads for work that may block. Tasks start in the order in which they are added.
class Workers {
 public:
  // Whether the destructor drops or finishes tasks that have not started. It always waits for
  // running tasks.
  enum class AtEnd { kDrop, kFinish };

  // An exception from a task ends the process; `what` names the work in that message.
  explicit Workers(std::string what, int threads = 1, AtEnd at_end = AtEnd::kDrop);
  ~Workers();
  Workers(const Workers&) = delete;
  Workers& operator=(const Workers&) = delete;

  void Run(std::function<void()> task) { tasks_.Put(std::move(task)); }  // any thread
  // Drops tasks that have not started, without waiting.
  void Stop();

 private:
  const AtEnd at_end_;
  Mailbox<std::function<void()>> tasks_;  // synchronises itself
  std::vector<std::jthread> threads_;     // last: joined before the rest is destroyed
};

}  // namespace pliant
