#pragma once

#include <functional>
#include <thread>
#include <vector>

#include "base/mailbox.h"

namespace pliant::controller {

// Runs a task that may block, somewhere other than on the control thread.
using Executor = std::function<void(std::function<void()> task)>;

// Threads for blocking work, in the order in which it comes.
class Workers {
 public:
  explicit Workers(int threads);
  // Drops what has not begun, waits for what has.
  ~Workers();
  Workers(const Workers&) = delete;
  Workers& operator=(const Workers&) = delete;

  // Any thread.
  void Run(std::function<void()> task) { tasks_.Put(std::move(task)); }
  Executor executor() {
    return [this](std::function<void()> task) { Run(std::move(task)); };
  }

 private:
  Mailbox<std::function<void()>> tasks_;
  std::vector<std::jthread> threads_;  // last: joined before the rest is destroyed
};

}  // namespace pliant::controller
