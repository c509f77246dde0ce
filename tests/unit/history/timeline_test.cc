#include "operator/history/timeline.h"

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "base/format.h"
#include "tests/unit/history/start.h"

namespace pliant::history {
namespace {
using namespace std::chrono_literals;

const Subject kJob{Kind::kJob, "team-a/digits", ""};

Values Gpus(std::int64_t gpus) { return {{Field::kGpus, gpus}}; }
Values Reason(std::string reason) { return {{Field::kReason, std::move(reason)}}; }

TEST(TimelineTest, OneChangeHasOnlyWhatDiffers) {
  Timeline timeline("r");
  timeline.Append(kStart, kJob, Values{{Field::kGpus, std::int64_t{2}}, {Field::kLoss, 0.5}});
  timeline.Append(kStart + 1s, kJob, Values{{Field::kGpus, std::int64_t{4}}, {Field::kLoss, 0.5}});
  timeline.Append(kStart + 2s, kJob, Values{{Field::kGpus, std::int64_t{4}}, {Field::kLoss, 0.5}});
  timeline.Append(kStart + 3s, kJob, Gpus(4));
  timeline.Append(kStart + 4s, kJob, std::nullopt);
  timeline.Append(kStart + 5s, kJob, std::nullopt);
  const auto changes = timeline.Since({"r", 1});
  ASSERT_TRUE(changes);
  const std::vector<Change> want = {
      {.sequence = 2,
       .at = kStart + 1s,
       .subject = kJob,
       .values = {{Field::kGpus, std::int64_t{4}}}},
      {.sequence = 3, .at = kStart + 3s, .subject = kJob, .values = {{Field::kLoss, std::nullopt}}},
      {.sequence = 4, .at = kStart + 4s, .subject = kJob, .gone = true, .values = {}}};
  EXPECT_EQ(*changes, want);
}

TEST(TimelineTest, AClockThatIsSetBackDoesNotReorderChanges) {
  Timeline timeline("r");
  timeline.Append(kStart + 10s, kJob, Gpus(1));
  timeline.Append(kStart, kJob, Gpus(2));
  EXPECT_EQ(timeline.At(kStart + 10s).frame.at(kJob), Gpus(2));
  EXPECT_EQ(timeline.Since({"r", 1})->front().at, kStart + 10s);
}

TEST(TimelineTest, BeforeItsBeginItShowsItsBegin) {
  Timeline timeline("r");
  EXPECT_FALSE(timeline.begin());
  EXPECT_TRUE(timeline.At(kStart).frame.empty());
  timeline.Append(kStart, kJob, Gpus(1));
  EXPECT_EQ(timeline.begin(), kStart);
  const Moment moment = timeline.At(kStart - 1h);
  EXPECT_EQ(moment.at, kStart);
  EXPECT_EQ(moment.frame.at(kJob), Gpus(1));
  EXPECT_EQ(moment.cursor, (Cursor{"r", 1}));
}

TEST(TimelineTest, AForeignOrUnknownCursorHasNoChanges) {
  Timeline timeline("r");
  timeline.Append(kStart, kJob, Gpus(1));
  EXPECT_TRUE(timeline.Since({"r", 1})->empty());
  EXPECT_FALSE(timeline.Since({"r", 2})) << "it did not happen yet";
  EXPECT_FALSE(timeline.Since({"another", 0}));
}

// A tenant may write another long reason with every write.
TEST(TimelineTest, DifferentTextsDoNotGrowTheMemory) {
  constexpr std::size_t kBytes = 256 << 10;
  Timeline timeline("r", kBytes);
  for (int round = 0; round < 20'000; ++round) {
    timeline.Append(kStart + std::chrono::seconds(round), kJob,
                    Reason(Format("{} {}", round, std::string(240, 'x'))));
    ASSERT_LE(timeline.bytes(), kBytes);
  }
  EXPECT_GT(timeline.dropped(), 10'000U);
  EXPECT_TRUE(timeline.Since({"r", timeline.dropped()}));
  EXPECT_FALSE(timeline.Since({"r", timeline.dropped() - 1}));
}

// A tenant may also create any number of jobs: those that were there first stay.
TEST(TimelineTest, ManySubjectsDoNotGrowTheMemory) {
  constexpr std::size_t kBytes = 256 << 10;
  Timeline timeline("r", kBytes);
  timeline.Append(kStart, kJob, Gpus(1));
  for (int round = 0; round < 5'000; ++round) {
    timeline.Append(kStart, {Kind::kJob, Format("team-b/{}", round), ""},
                    Reason(Format("{}", round)));
    ASSERT_LE(timeline.bytes(), kBytes);
  }
  EXPECT_GT(timeline.refused(), 1'000U);
  timeline.Append(kStart + 1s, kJob, Gpus(2));
  const Frame frame = timeline.At(kStart + 1s).frame;
  EXPECT_EQ(frame.at(kJob), Gpus(2));
  EXPECT_FALSE(frame.contains({Kind::kJob, "team-b/4999", ""}));
  // Room that becomes free is used again.
  for (int round = 0; round < 5'000; ++round)
    timeline.Append(kStart + 2s, {Kind::kJob, Format("team-b/{}", round), ""}, std::nullopt);
  timeline.Append(kStart + 3s, {Kind::kJob, "team-b/4999", ""}, Gpus(1));
  EXPECT_EQ(timeline.At(kStart + 3s).frame.size(), 2);
}

TEST(TimelineTest, TenThousandJobsFit) {
  Timeline timeline("r");
  for (int i = 0; i < 1000; ++i) {
    const std::string node = Format("gpu-node-{:04}", i);
    const std::string job = Format("team-{:02}/language-model-{:05}", i % 20, i);
    timeline.Append(kStart, {Kind::kNode, node, ""}, Gpus(8));
    timeline.Append(kStart, {Kind::kHeld, job, node}, Gpus(8));
  }
  for (int i = 0; i < 10'000; ++i) {
    timeline.Append(kStart, {Kind::kJob, Format("team-{:02}/language-model-{:05}", i % 20, i), ""},
                    Values{{Field::kQueue, Format("team-{:02}", i % 20)},
                           {Field::kPhase, std::string("Running")},
                           {Field::kCreated, std::int64_t{1'800'000'000'000} + i},
                           {Field::kReason, Format("{} {}", i, std::string(120, 'x'))},
                           {Field::kLoss, 1.0 / (i + 1)}});
  }
  EXPECT_EQ(timeline.refused(), 0);
  EXPECT_EQ(timeline.dropped(), 0);
}

}  // namespace
}  // namespace pliant::history
