#pragma once

#include <chrono>
#include <functional>

#include <gtest/gtest.h>

#include "base/real_event_loop.h"

namespace pliant {

// Runs the loop on the calling thread until `condition` holds after a task. Fails the test after a
// timeout that is long enough for a busy machine.
inline void RunUntil(RealEventLoop& loop, const std::function<bool()>& condition) {
  bool late = false;
  const TimerId timer = loop.PostAfter(std::chrono::seconds(20), [&] { late = true; });
  while (!condition() && !late) loop.context().run_one();
  loop.Cancel(timer);
  ASSERT_TRUE(condition()) << "the condition did not come true";
}

}  // namespace pliant
