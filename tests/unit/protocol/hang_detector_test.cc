#include "trainer/protocol/hang_detector.h"

#include <optional>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace pliant {
namespace {

using namespace std::chrono_literals;
using Kind = ProgramCall::Kind;

constexpr Duration kMax = 20s;

struct Seen {
  Duration at;
  std::optional<ProgramCall> call;
};

// Looks once per pause, as a loop does. Returns when the hang was found.
std::optional<Duration> FoundAt(const std::vector<Seen>& story, Duration until) {
  HangDetector watch(kMax);
  std::optional<ProgramCall> call;
  std::size_t next = 0;
  for (Duration now = 0s; now <= until; now += watch.pause()) {
    for (; next < story.size() && story[next].at <= now; ++next) call = story[next].call;
    if (watch.Look(call, TimePoint() + 1h + now)) return now;
  }
  return std::nullopt;
}

TEST(HangDetector, FindsOneCallThatTakesTooLong) {
  const ProgramCall shard{.kind = Kind::kTrain, .number = 1, .step = 16, .shard = 3};
  const ProgramCall next{.kind = Kind::kTrain, .number = 1, .step = 16, .shard = 4};
  const ProgramCall again{.kind = Kind::kTrain, .number = 2, .step = 16, .shard = 3};
  const ProgramCall commit{.kind = Kind::kCommit, .number = 2, .step = 16};
  const struct {
    const char* what;
    std::vector<Seen> story;
    std::optional<Duration> found;
  } kCases[] = {
      {"the program has no call", {}, std::nullopt},
      {"a shard", {{5s, shard}}, 25s},
      {"a shard that ends in time", {{5s, shard}, {24s, std::nullopt}}, std::nullopt},
      {"a shard after another", {{5s, shard}, {24s, next}}, 44s},
      {"the same shard once more", {{5s, shard}, {24s, again}}, 44s},
      {"a commit after a shard", {{5s, shard}, {15s, commit}}, 35s},
      {"the same after a pause", {{5s, shard}, {15s, std::nullopt}, {16s, again}}, 36s},
  };
  for (const auto& [what, story, found] : kCases) EXPECT_EQ(FoundAt(story, 1min), found) << what;
}

TEST(HangDetector, TimeInWhichNobodyLookedDoesNotCount) {
  HangDetector watch(kMax);
  const ProgramCall shard{.number = 1};
  const TimePoint began{1h};
  EXPECT_FALSE(watch.Look(shard, began));
  EXPECT_FALSE(watch.Look(shard, began + 1s));
  EXPECT_FALSE(watch.Look(shard, began + 1h)) << "the process was stopped";
  for (Duration later = 1s; later < kMax; later += 1s) {
    EXPECT_FALSE(watch.Look(shard, began + 1h + later));
  }
  EXPECT_TRUE(watch.Look(shard, began + 1h + kMax))
      << "the process runs again, the program does not";
}

TEST(HangDetector, SaysWhatItHangsAt) {
  const struct {
    ProgramCall call;
    const char* want;
  } kCases[] = {
      {{.kind = Kind::kTrain, .step = 16, .shard = 3}, "shard 3 of step 17"},
      {{.kind = Kind::kTrain, .step = 16}, "step 17"},
      {{.kind = Kind::kEvaluate, .step = 16, .shard = 3},
       "shard 3 of the evaluation after step 16"},
      {{.kind = Kind::kCommit, .step = 16}, "the update of step 17"},
      {{.kind = Kind::kEvaluated, .step = 16}, "the result of the evaluation after step 16"},
      {{.kind = Kind::kLoad}, "loading a state"},
  };
  for (const auto& [call, want] : kCases) {
    HangDetector watch(1s);
    std::optional<std::string> found;
    for (Duration now = 1h; !found && now < 1h + 10s; now += watch.pause()) {
      found = watch.Look(call, TimePoint(now));
    }
    ASSERT_TRUE(found);
    EXPECT_THAT(*found, testing::StartsWith(std::string("StepTimeout: its program has worked at ") +
                                            want + " for 1 s"));
  }
}

TEST(HangDetector, ZeroIsNoLimit) {
  EXPECT_FALSE(HangDetector(Duration::zero()).watches());
  EXPECT_TRUE(HangDetector(1s).watches());
}

}  // namespace
}  // namespace pliant
