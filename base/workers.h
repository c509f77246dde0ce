#pragma once

#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "base/mailbox.h"

namespace pliant {

// Threads for work that may block, which begin it in the order in which it comes.
class Workers {
 public:
  // Whether the destructor drops or finishes work that has not begun. It waits for work that has.
  enum class AtEnd { kDrop, kFinish };

  // An exception of a task ends the process; `what` says in the log what was done.
  explicit Workers(std::string what, int threads = 1, AtEnd at_end = AtEnd::kDrop);
  ~Workers();
  Workers(const Workers&) = delete;
  Workers& operator=(const Workers&) = delete;

  void Run(std::function<void()> task) { tasks_.Put(std::move(task)); }  // any thread
  // Drops what has not begun, without waiting.
  void Stop();

 private:
  const AtEnd at_end_;
  Mailbox<std::function<void()>> tasks_;  // synchronises itself
  std::vector<std::jthread> threads_;     // last: joined before the rest is destroyed
};

}  // namespace pliant
