#include "trainer/runtime/hang_watch.h"

#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "base/sim_event_loop.h"
#include "tests/unit/runtime/fake_compute.h"

namespace pliant {
namespace {

using std::chrono::hours;
using std::chrono::seconds;

struct Watching {
  explicit Watching(Duration timeout)
      : watch(timeout, tasks, compute,
              [this](std::string hang) { told.push_back(std::move(hang)); }) {
    compute.at = ProgramCall{.kind = ProgramCall::Kind::kCommit, .number = 3, .step = 7};
    watch.Start();
  }

  SimEventLoop loop;
  Tasks tasks{loop, [] {}};
  FakeCompute compute{loop};
  std::vector<std::string> told;
  HangWatch watch;
};

TEST(HangWatch, TellsOnceOfAProgramThatHangs) {
  Watching it(seconds(20));
  it.loop.RunFor(seconds(19));
  EXPECT_TRUE(it.told.empty());
  it.loop.RunFor(seconds(4));
  ASSERT_EQ(it.told.size(), 1U);
  EXPECT_TRUE(it.told.front().contains("the update of step 8")) << it.told.front();
  it.loop.RunFor(hours(1));
  EXPECT_EQ(it.told.size(), 1U);
  EXPECT_EQ(it.loop.pending(), 0U) << "it no longer polls";
}

TEST(HangWatch, AProgramThatWorksIsNotToldOf) {
  Watching it(seconds(20));
  for (int call = 0; call < 100; ++call) {
    it.loop.RunFor(seconds(15));
    ++it.compute.at->number;
  }
  EXPECT_TRUE(it.told.empty());
}

TEST(HangWatch, WithoutATimeoutItNeverLooks) {
  Watching it(Duration{});
  EXPECT_EQ(it.loop.pending(), 0U);
}

}  // namespace
}  // namespace pliant
