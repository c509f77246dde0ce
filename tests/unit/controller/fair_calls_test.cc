#include "operator/controller/calls/fair_calls.h"

#include <chrono>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/sim_event_loop.h"
#include "tests/unit/controller/slow_calls.h"

namespace pliant::controller {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::ElementsAre;

class FairCallsTest : public testing::Test {
 protected:
  FairCallsTest() : calls(loop, 8), fair(Make({.at_a_time = 8, .of_one = 2})) {}

  FairCalls Make(FairCallsOptions options) {
    return FairCalls(
        calls, [this](std::function<void()> task) { calls.Run(std::move(task)); }, options);
  }

  void Run(FairCalls& with, const std::string& owner, Duration takes) {
    with.Run(owner, [this, owner, takes] {
      calls.took = takes;
      begun.push_back(owner);
    });
  }

  SimEventLoop loop;
  SlowCalls calls;
  FairCalls fair;
  std::vector<std::string> begun;
};

TEST_F(FairCallsTest, SlowCallsHoldUpNoOthers) {
  for (int i = 0; i < 16; ++i) Run(fair, "slow", seconds(12));
  loop.RunFor(seconds(1));
  EXPECT_EQ(begun.size(), 2u) << "a quarter of the threads";
  begun.clear();
  for (int i = 0; i < 20; ++i) Run(fair, "quick", milliseconds(10));
  loop.RunFor(milliseconds(200));
  EXPECT_EQ(begun.size(), 20u);
  begun.clear();
  loop.RunFor(seconds(100));
  EXPECT_EQ(begun.size(), 14u) << "every call was made";
}

TEST_F(FairCallsTest, ThreeWhoseCallsLastLeaveAThreadForEachOther) {
  for (const char* owner : {"a", "b", "c"}) {
    for (int i = 0; i < 16; ++i) Run(fair, owner, seconds(12));
  }
  begun.clear();
  for (int i = 0; i < 10; ++i) Run(fair, "d", milliseconds(10));
  loop.RunFor(milliseconds(100));
  EXPECT_EQ(begun.size(), 10u);
}

// When all threads are busy, the owner that came last still has the next turn.
TEST_F(FairCallsTest, OwnersHaveTheirTurns) {
  FairCalls one = Make({.at_a_time = 1, .of_one = 1});
  for (const char* owner : {"b", "b", "b", "a", "c", "a"}) Run(one, owner, seconds(1));
  loop.RunFor(seconds(10));
  EXPECT_THAT(begun, ElementsAre("b", "c", "a", "b", "a", "b"));
}

TEST_F(FairCallsTest, CallsMayEndAfterIt) {
  {
    FairCalls gone = Make({.at_a_time = 1, .of_one = 1});
    Run(gone, "a", seconds(1));
    Run(gone, "a", seconds(1));
  }
  loop.RunFor(seconds(10));
  EXPECT_EQ(begun.size(), 1u);
}

}  // namespace
}  // namespace pliant::controller
