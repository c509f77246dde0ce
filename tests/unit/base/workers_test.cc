#include "base/workers.h"

#include <chrono>
#include <latch>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

namespace pliant {
namespace {

TEST(Workers, BeginInTheOrderAsked) {
  std::vector<int> done;
  {
    Workers workers("numbers", 1, Workers::AtEnd::kFinish);
    for (int i = 0; i < 5; ++i) workers.Run([&done, i] { done.push_back(i); });
  }
  EXPECT_EQ(done, (std::vector<int>{0, 1, 2, 3, 4}));
}

TEST(Workers, DropWhatHasNotBegunAndWaitForWhatHas) {
  std::latch begun(1);
  std::latch stopped(1);
  bool first = false;
  bool second = false;
  {
    Workers workers("latches");
    workers.Run([&] {
      begun.count_down();
      stopped.wait();
      first = true;
    });
    workers.Run([&] { second = true; });
    begun.wait();
    workers.Stop();
    stopped.count_down();
  }
  EXPECT_TRUE(first);
  EXPECT_FALSE(second);
}

TEST(Workers, AsTheyAreUnlessToldOtherwiseTheyDropWhatHasNotBegun) {
  std::latch begun(1);
  std::latch ends(1);
  bool second = false;
  std::optional<Workers> workers(std::in_place, "latches");
  workers->Run([&] {
    begun.count_down();
    ends.wait();
  });
  workers->Run([&] { second = true; });
  begun.wait();
  std::jthread release([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(50));  // the destructor waits by then
    ends.count_down();
  });
  workers.reset();
  EXPECT_FALSE(second);
}

TEST(Workers, SeveralWorkAtATime) {
  std::latch both(2);
  Workers workers("two", 2, Workers::AtEnd::kFinish);
  for (int i = 0; i < 2; ++i) workers.Run([&both] { both.arrive_and_wait(); });
}

TEST(WorkersDeathTest, AnExceptionEndsTheProcessAndNamesTheWork) {
  EXPECT_EXIT(
      {
        Workers workers("pancakes", 1, Workers::AtEnd::kFinish);
        workers.Run([] { throw 1; });
      },
      testing::ExitedWithCode(1), "pancakes");
}

}  // namespace
}  // namespace pliant
