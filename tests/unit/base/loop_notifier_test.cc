#include "base/loop_notifier.h"

#include <atomic>
#include <memory>
#include <thread>

#include <gtest/gtest.h>

#include "base/real_event_loop.h"
#include "base/sim_event_loop.h"

namespace pliant {
namespace {

TEST(LoopNotifier, RingsBeforeTheLoopHasComeToItAreOne) {
  SimEventLoop loop;
  int calls = 0;
  LoopNotifier notifier(loop, [&] { ++calls; });
  for (int turn = 1; turn <= 3; ++turn) {
    notifier.Notify();
    notifier.Notify();
    loop.RunFor({});
    EXPECT_EQ(calls, turn);
  }
}

TEST(LoopNotifier, NoneIsLost) {
  RealEventLoop loop;
  std::atomic<int> notified = 0;
  LoopNotifier notifier(loop, [&] {
    if (notified == 1000) loop.Stop();
  });
  std::jthread other([&] {
    for (int i = 0; i < 1000; ++i) {
      ++notified;
      notifier.Notify();
    }
  });
  loop.Run();
  EXPECT_EQ(notified, 1000);
}

TEST(LoopNotifier, DestroyedItIsSilent) {
  SimEventLoop loop;
  auto notifier =
      std::make_unique<LoopNotifier>(loop, [] { ADD_FAILURE() << "its owner is destroyed"; });
  notifier->Notify();
  notifier.reset();
  loop.RunFor({});
}

TEST(LoopNotifier, MayEndInItsCall) {
  SimEventLoop loop;
  std::unique_ptr<LoopNotifier> notifier;
  int calls = 0;
  notifier = std::make_unique<LoopNotifier>(loop, [&] {
    ++calls;
    notifier->Notify();
    notifier.reset();
  });
  notifier->Notify();
  loop.RunFor({});
  EXPECT_EQ(calls, 1);
}

TEST(LoopNotifier, TheLoopMayNeverComeToIt) {
  SimEventLoop loop;
  LoopNotifier notifier(loop, [] { ADD_FAILURE() << "the loop does not run"; });
  notifier.Notify();
}

}  // namespace
}  // namespace pliant
