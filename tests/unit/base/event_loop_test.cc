#include "base/event_loop.h"

#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "base/real_event_loop.h"
#include "base/sim_event_loop.h"

namespace pliant {
namespace {
using namespace std::chrono_literals;

// The contract of every event loop. `run` drives the loop until a task calls `stop`.
struct Driver {
  EventLoop& loop;
  std::function<void()> run;
  std::function<void()> stop;
};

void OnEachLoop(const std::function<void(Driver)>& story) {
  {
    SCOPED_TRACE("SimEventLoop");
    SimEventLoop loop;
    bool stopped = false;
    story({loop, [&] { ASSERT_TRUE(loop.RunUntilTrue([&] { return stopped; }, 1h)); },
           [&] { stopped = true; }});
  }
  {
    SCOPED_TRACE("RealEventLoop");
    RealEventLoop loop;
    story({loop, [&] { loop.Run(); }, [&] { loop.Stop(); }});
  }
}

TEST(EventLoop, RunsInTheOrderOfTimesThenOfPosting) {
  OnEachLoop([](Driver driver) {
    std::vector<int> order;
    driver.loop.Post([&] {
      order.push_back(1);
      // Posted within a task, these are due after the tasks that already wait, however slow the
      // machine is.
      driver.loop.PostAfter(20ms, [&] { order.push_back(4), driver.stop(); });
      driver.loop.PostAfter(5ms, [&] { order.push_back(3); });
    });
    driver.loop.Post([&] { order.push_back(2); });
    EXPECT_TRUE(order.empty()) << "never within the call";
    driver.run();
    EXPECT_EQ(order, (std::vector{1, 2, 3, 4}));
  });
}

TEST(EventLoop, ACancelledTimerDoesNotRun) {
  OnEachLoop([](Driver driver) {
    bool ran = false;
    const TimerId timer = driver.loop.PostAfter(1ms, [&] { ran = true; });
    driver.loop.Cancel(timer);
    driver.loop.Cancel(timer);
    driver.loop.PostAfter(10ms, [&] { driver.stop(); });
    driver.run();
    EXPECT_FALSE(ran);
  });
}

TEST(EventLoop, TimeMovesOnByAtLeastTheDelay) {
  OnEachLoop([](Driver driver) {
    const TimePoint start = driver.loop.Now();
    TimePoint end;
    driver.loop.PostAfter(3ms, [&] { end = driver.loop.Now(), driver.stop(); });
    driver.run();
    EXPECT_GE(end - start, Duration(3ms));
  });
}

TEST(RealEventLoop, OtherThreadsMayPost) {
  RealEventLoop loop;
  int sum = 0;
  std::jthread other([&] {
    for (int i = 0; i < 100; ++i) loop.Post([&sum] { ++sum; });
    loop.Post([&loop] { loop.Stop(); });
  });
  loop.Run();
  EXPECT_EQ(sum, 100);
}

TEST(SimEventLoop, RunUntilLeavesTheTimeAtItsEnd) {
  SimEventLoop loop;
  loop.RunFor(7s);
  EXPECT_EQ(loop.Now(), TimePoint(7s));
}

}  // namespace
}  // namespace pliant
