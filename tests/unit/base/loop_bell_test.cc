#include "base/loop_bell.h"

#include <atomic>
#include <memory>
#include <thread>

#include <gtest/gtest.h>

#include "base/real_event_loop.h"
#include "base/sim_event_loop.h"

namespace pliant {
namespace {

TEST(LoopBell, RingsBeforeTheLoopHasComeToItAreOne) {
  SimEventLoop loop;
  int calls = 0;
  LoopBell bell(loop, [&] { ++calls; });
  for (int turn = 1; turn <= 3; ++turn) {
    bell.Ring();
    bell.Ring();
    loop.RunFor({});
    EXPECT_EQ(calls, turn);
  }
}

TEST(LoopBell, NoneIsLost) {
  RealEventLoop loop;
  std::atomic<int> rung = 0;
  LoopBell bell(loop, [&] {
    if (rung == 1000) loop.Stop();
  });
  std::jthread other([&] {
    for (int i = 0; i < 1000; ++i) {
      ++rung;
      bell.Ring();
    }
  });
  loop.Run();
  EXPECT_EQ(rung, 1000);
}

TEST(LoopBell, DestroyedItIsSilent) {
  SimEventLoop loop;
  auto bell = std::make_unique<LoopBell>(loop, [] { ADD_FAILURE() << "its owner is gone"; });
  bell->Ring();
  bell.reset();
  loop.RunFor({});
}

TEST(LoopBell, MayEndInItsCall) {
  SimEventLoop loop;
  std::unique_ptr<LoopBell> bell;
  int calls = 0;
  bell = std::make_unique<LoopBell>(loop, [&] {
    ++calls;
    bell->Ring();
    bell.reset();
  });
  bell->Ring();
  loop.RunFor({});
  EXPECT_EQ(calls, 1);
}

TEST(LoopBell, TheLoopMayNeverComeToIt) {
  SimEventLoop loop;
  LoopBell bell(loop, [] { ADD_FAILURE() << "nobody runs the loop"; });
  bell.Ring();
}

}  // namespace
}  // namespace pliant
