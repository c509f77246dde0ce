#pragma once

#include <chrono>
#include <functional>

#include <gtest/gtest.h>

#include "base/real_event_loop.h"

namespace pliant {

// Runs the loop until `condition` holds after a task, on the calling thread. Fails the test when
// that takes so long that it will not come any more, on a busy machine too.
inline void RunUntil(RealEventLoop& loop, const std::function<bool()>& condition) {
  bool late = false;
  const TimerId timer = loop.PostAfter(std::chrono::seconds(20), [&] { late = true; });
  while (!condition() && !late) loop.context().run_one();
  loop.Cancel(timer);
  ASSERT_TRUE(condition()) << "what was waited for did not come";
}

}  // namespace pliant
