#include "trainer/runtime/tasks.h"

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "base/sim_event_loop.h"
#include "trainer/runtime/volume_retry.h"

namespace pliant {
namespace {

using std::chrono::seconds;
using Ran = std::vector<std::string>;

struct TasksOf {
  SimEventLoop loop;
  Ran ran;
  std::optional<Tasks> tasks{std::in_place, loop, [this] { ran.emplace_back("after"); }};
  std::function<void()> Name(const char* name) {
    return [this, name] { ran.emplace_back(name); };
  }
};

TEST(Tasks, SomethingFollowsEachOfThem) {
  TasksOf it;
  it.tasks->After(seconds(2), it.Name("second"));
  it.tasks->After(seconds(1), it.Name("first"));
  const auto guarded =
      it.tasks->Guard<int>([&](int value) { it.ran.push_back(std::to_string(value)); });
  EXPECT_EQ(it.ran, Ran{}) << "not within the call";
  it.loop.RunFor(seconds(2));
  EXPECT_EQ(it.ran, (Ran{"first", "after", "second", "after"}));
  it.ran.clear();
  guarded(7);
  guarded(8);
  EXPECT_EQ(it.ran, (Ran{"7", "after", "8", "after"}));
  EXPECT_EQ(it.tasks->Now(), it.loop.Now());
}

TEST(Tasks, DoNothingThatWasPostedBeforeTheEnd) {
  for (const bool gone : {false, true}) {
    SCOPED_TRACE(gone ? "gone" : "ended");
    TasksOf it;
    it.tasks->After(seconds(1), it.Name("early"));
    const auto guarded = it.tasks->Guard<int>([&](int) { it.ran.emplace_back("guarded"); });
    if (gone) {
      it.tasks.reset();
    } else {
      it.tasks->End();
    }
    guarded(1);
    it.loop.RunFor(seconds(2));
    EXPECT_EQ(it.ran, Ran{});
    if (gone) continue;
    it.tasks->After(seconds(1), it.Name("late"));
    it.loop.RunFor(seconds(2));
    EXPECT_EQ(it.ran, (Ran{"late", "after"})) << "tasks posted from there on are run";
  }
}

TEST(Tasks, NothingFollowsATaskThatEndedThem) {
  for (const bool gone : {false, true}) {
    SCOPED_TRACE(gone ? "gone" : "ended");
    TasksOf it;
    const auto end = [&] {
      it.ran.emplace_back("end");
      if (gone) {
        it.tasks.reset();
      } else {
        it.tasks->End();
      }
    };
    it.tasks->After(seconds(1), end);
    it.loop.RunFor(seconds(1));
    EXPECT_EQ(it.ran, Ran{"end"});
    it.tasks.emplace(it.loop, it.Name("after"));
    it.tasks->Guard<int>([&](int) { end(); })(1);
    EXPECT_EQ(it.ran, (Ran{"end", "end"}));
  }
}

TEST(VolumeRetry, TriesTenTimesInARow) {
  VolumeRetry retry;
  for (int i = 0; i < 9; ++i) EXPECT_TRUE(retry.OnFailed()) << i;
  EXPECT_FALSE(retry.OnFailed());
  retry.Reset();
  for (int i = 0; i < 9; ++i) EXPECT_TRUE(retry.OnFailed()) << i;
  retry.Reset();
  EXPECT_TRUE(retry.OnFailed());
}

}  // namespace
}  // namespace pliant
