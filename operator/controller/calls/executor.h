#pragma once

#include <functional>
#include <utility>

#include "base/workers.h"

namespace pliant::controller {

// Runs a task that may block, somewhere other than on the control thread.
using Executor = std::function<void(std::function<void()> task)>;

// `workers` outlive it.
inline Executor ExecutorOf(Workers& workers) {
  return [&workers](std::function<void()> task) { workers.Run(std::move(task)); };
}

}  // namespace pliant::controller
