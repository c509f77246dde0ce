#include "operator/web/timeline_recorder.h"

#include <chrono>
#include <memory>
#include <optional>
#include <vector>

#include <gtest/gtest.h>

#include "base/sim_event_loop.h"

namespace pliant::web {
namespace {
using namespace std::chrono_literals;

TEST(TimelineRecorderTest, LooksTwiceASecondAndSaysTheTimeWithoutChanges) {
  SimEventLoop loop;
  int looks = 0;
  std::vector<std::size_t> passed;
  std::vector<history::Observation> next;
  std::optional<TimelineRecorder> recorder;
  recorder.emplace(
      loop, [] { return history::WallTime(); },
      [&](history::WallTime) {
        ++looks;
        return std::exchange(next, {});
      },
      [&](history::WallTime, std::vector<history::Observation> seen) {
        passed.push_back(seen.size());
      });
  loop.RunFor(4900ms);
  EXPECT_EQ(looks, 10);
  EXPECT_TRUE(passed.empty());
  loop.RunFor(200ms);
  EXPECT_EQ(passed, (std::vector<std::size_t>{0}));
  next = {{.subject = {}, .values = {}}, {.subject = {}, .values = {}}};
  loop.RunFor(1s);
  EXPECT_EQ(passed, (std::vector<std::size_t>{0, 2}));
  loop.RunFor(4s);
  EXPECT_EQ(passed.size(), 2) << "the time was passed with the changes";
  loop.RunFor(1s);
  EXPECT_EQ(passed.size(), 3);
  recorder.reset();
  looks = 0;
  loop.RunFor(10s);
  EXPECT_EQ(looks, 0);
}

}  // namespace
}  // namespace pliant::web
