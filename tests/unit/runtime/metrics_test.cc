#include "trainer/runtime/metrics.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <sstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "trainer/runtime/metrics_file.h"

namespace pliant {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;
using testing::Not;

// An epoch of 3 optimizer steps of 4 samples, then an evaluation of two ticks.
MetricsAccumulator::Commit CommitOf(Tick tick, Duration at, double loss = 2) {
  const Tick in_epoch = tick % 5;
  const bool train = in_epoch < 3;
  return {.tick = tick,
          .plan = {.kind = train ? TickKind::kTrain : TickKind::kEvaluate,
                   .epoch = tick / 5,
                   .step = tick / 5 * 3 + std::min<Tick>(in_epoch, 3),
                   .samples = 4,
                   .last_of_kind = in_epoch == 2 || in_epoch == 4},
          .sums = {.samples = 4, .loss = loss, .correct = 3},
          .learners = 2,
          .membership = {1, 4},
          .now = TimePoint(at),
          .unix_seconds = 1000 + ToSeconds(at)};
}

TEST(Metrics, ATrainingLineIsDueOnceASecondAndAtAnEpochsEnd) {
  MetricsAccumulator metrics;
  EXPECT_FALSE(metrics.OnCommit(CommitOf(0, 0s)));
  EXPECT_FALSE(metrics.OnCommit(CommitOf(1, 500ms)));
  const auto line = metrics.OnCommit(CommitOf(2, 600ms, 5));
  ASSERT_TRUE(line);
  EXPECT_EQ(*line, R"({"accuracy":0.75,"epoch":0,"kind":"train","learners":2,"loss":0.75,)"
                   R"("membership":"1.4","samplesPerSecond":13.333333333333334,"step":3,"tick":2,)"
                   R"("unixSeconds":1000.6})");
  EXPECT_DOUBLE_EQ(metrics.loss().value(), 0.75);
  EXPECT_FALSE(metrics.OnCommit(CommitOf(5, 10s))) << "the clock starts anew behind an evaluation";
  EXPECT_TRUE(metrics.OnCommit(CommitOf(6, 11s)));
}

TEST(Metrics, AnEvaluationIsOneLineOverAllItsTicks) {
  MetricsAccumulator metrics;
  EXPECT_FALSE(metrics.OnCommit(CommitOf(3, 1s)));
  const auto line = metrics.OnCommit(CommitOf(4, 2s, 6));
  ASSERT_TRUE(line);
  EXPECT_THAT(*line, HasSubstr(R"("kind":"test")"));
  EXPECT_THAT(*line, HasSubstr(R"("loss":1.0)"));
  EXPECT_THAT(*line, HasSubstr(R"("samples":8.0)"));
  EXPECT_EQ(metrics.accuracy(), 0.75);
  EXPECT_EQ(metrics.evaluated_epoch(), 0U);
  EXPECT_EQ(metrics.evaluation(), ShardSums{});
}

TEST(Metrics, WhoTakesOverInAnEvaluationGoesOnWithIt) {
  MetricsAccumulator first;
  first.OnCommit(CommitOf(3, 1s));
  MetricsAccumulator second;
  second.Restart(first.evaluation());
  EXPECT_EQ(second.OnCommit(CommitOf(4, 2s)), first.OnCommit(CommitOf(4, 2s)));
}

TEST(Metrics, ALossThatOverflowedIsLeftOut) {
  MetricsAccumulator metrics;
  const auto line = metrics.OnCommit(CommitOf(2, 1s, std::nan("")));
  ASSERT_TRUE(line);
  EXPECT_THAT(*line, Not(HasSubstr("loss")));
}

TEST(MetricsFile, IsCutWhereTrainingGoesOn) {
  const std::filesystem::path folder =
      std::filesystem::temp_directory_path() / ("pliant-metrics-" + std::to_string(::getpid()));
  std::filesystem::remove_all(folder);
  const auto file = NewMetricsFile(folder / "metrics.jsonl");
  const auto content = [&] {
    std::ifstream in(folder / "metrics.jsonl");
    return (std::ostringstream() << in.rdbuf()).str();
  };
  const auto append = [&](Tick tick) {
    file->Append(tick, R"({"tick":)" + std::to_string(tick) + "}");
  };
  file->CutFrom(3);  // there is none yet
  for (const int tick : {1, 2, 3, 4}) append(tick);
  EXPECT_EQ(content(), "{\"tick\":1}\n{\"tick\":2}\n{\"tick\":3}\n{\"tick\":4}\n");
  std::ofstream(folder / "metrics.jsonl", std::ios::app) << R"({"tick":2, "to)";  // a torn line
  file->CutFrom(3);
  EXPECT_EQ(content(), "{\"tick\":1}\n{\"tick\":2}\n");
  append(3);
  EXPECT_EQ(content(), "{\"tick\":1}\n{\"tick\":2}\n{\"tick\":3}\n");
  append(3);  // of a rank 0 that leaves, after its successor
  append(2);
  EXPECT_EQ(content(), "{\"tick\":1}\n{\"tick\":2}\n{\"tick\":3}\n");
  std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace pliant
