#include "trainer/protocol/metrics.h"

#include <algorithm>
#include <cmath>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace pliant {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;
using testing::Not;

// An epoch has 3 optimizer steps of 4 samples, then an evaluation of two ticks.
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
          .total_steps = 6,
          .batch_size = 4,
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
  EXPECT_EQ(
      *line,
      R"({"accuracy":0.75,"batchSize":4,"epoch":0,"kind":"train","learners":2,"loss":0.75,)"
      R"("membership":"1.4","samples":12.0,"samplesPerSecond":13.333333333333334,"step":3,"tick":2,)"
      R"("totalSteps":6,"unixSeconds":1000.6})");
  EXPECT_DOUBLE_EQ(metrics.loss().value(), 0.75);
  EXPECT_FALSE(metrics.OnCommit(CommitOf(5, 10s))) << "the clock starts over after an evaluation";
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
  EXPECT_EQ(metrics.evaluations(),
            (std::vector<Evaluation>{
                {.step = 3, .epoch = 0, .loss = 1, .accuracy = 0.75, .sums = {{"samples", 8}}}}));
  EXPECT_EQ(metrics.evaluation(), ShardSums{});
}

// Three steps of 4 samples in 10 tokens each.
TEST(Metrics, MeansAreByWeightAndTheRateIsBySamples) {
  MetricsAccumulator metrics;
  std::optional<std::string> line;
  for (Tick tick = 0; tick < 3; ++tick) {
    MetricsAccumulator::Commit commit = CommitOf(tick, tick * 250ms, 20);
    commit.sums.weight = 10;
    commit.sums.named = {{"entropy", 1.5}, {"overflown", INFINITY}};
    line = metrics.OnCommit(commit);
  }
  ASSERT_TRUE(line);
  for (const char* part :
       {R"("loss":2.0)", R"("accuracy":0.3)", R"("weight":30.0)", R"("samples":12.0)",
        R"("sums":{"entropy":4.5})", R"("samplesPerSecond":16.0)"}) {
    EXPECT_THAT(*line, HasSubstr(part));
  }
  EXPECT_EQ(metrics.loss(), 2);
}

TEST(Metrics, ALineHasAsManySumsAsAStepMayHave) {
  MetricsAccumulator metrics;
  std::optional<std::string> line;
  for (Tick tick = 0; tick < 3; ++tick) {
    MetricsAccumulator::Commit commit = CommitOf(tick, tick * 250ms);
    for (std::size_t i = 0; i < kMaxNamedSums; ++i) {
      commit.sums.named["step" + std::to_string(tick) + "-" + std::to_string(i)] = 1;
    }
    line = metrics.OnCommit(commit);
  }
  ASSERT_TRUE(line);
  EXPECT_EQ(std::ranges::count(*line, '-'), kMaxNamedSums);
}

TEST(Metrics, AMeanOverNothingIsLeftOut) {
  MetricsAccumulator metrics;
  MetricsAccumulator::Commit commit = CommitOf(2, 1s, 0);
  commit.sums.weight = 0;
  commit.sums.correct = 0;
  const auto line = metrics.OnCommit(commit);
  ASSERT_TRUE(line);
  EXPECT_THAT(*line, Not(HasSubstr("loss")));
  EXPECT_THAT(*line, Not(HasSubstr("accuracy")));
}

TEST(Metrics, AnEvaluationReportsItsSumsUpToTheLimit) {
  MetricsAccumulator metrics;
  MetricsAccumulator::Commit commit = CommitOf(4, 1s, 6);
  commit.sums.weight = 12;
  for (int i = 10; i < 10 + static_cast<int>(kMaxNamedSums); ++i) {
    commit.sums.named["n" + std::to_string(i)] = i;
  }
  metrics.OnCommit(commit);
  const Evaluation& evaluation = metrics.evaluations().back();
  EXPECT_EQ(evaluation.loss, 0.5);
  EXPECT_EQ(evaluation.accuracy, 0.25);
  EXPECT_EQ(evaluation.sums.size(), kEvaluationSums);
  EXPECT_EQ(evaluation.sums.at("weight"), 12);
  EXPECT_EQ(evaluation.sums.at("samples"), 4);
  EXPECT_EQ(evaluation.sums.at("n10"), 10);
}

TEST(Metrics, ASuccessorContinuesAnEvaluation) {
  MetricsAccumulator first;
  first.OnCommit(CommitOf(3, 1s));
  MetricsAccumulator second;
  second.Restart(first.evaluation());
  EXPECT_EQ(second.OnCommit(CommitOf(4, 2s)), first.OnCommit(CommitOf(4, 2s)));
}

// Step 3 is after the first epoch, step 6 after the second.
TEST(Metrics, AnEvaluationAfterARestoreReplacesThoseThatWereLost) {
  MetricsAccumulator metrics;
  for (const Tick last : {4, 9}) metrics.OnCommit(CommitOf(last, 1s));
  ASSERT_EQ(metrics.evaluations().size(), 2U);
  metrics.Restart({});
  metrics.OnCommit(CommitOf(4, 2s, 8));
  ASSERT_EQ(metrics.evaluations().size(), 1U);
  EXPECT_EQ(metrics.evaluations().back().loss, 2);
}

TEST(Metrics, TheLastEvaluationsAreKept) {
  MetricsAccumulator metrics;
  for (Tick epoch = 0; epoch < 20; ++epoch) metrics.OnCommit(CommitOf(epoch * 5 + 4, 1s));
  ASSERT_EQ(metrics.evaluations().size(), kEvaluationsKept);
  EXPECT_EQ(metrics.evaluations().front().epoch, 4U);
  EXPECT_EQ(metrics.evaluations().back().epoch, 19U);
}

TEST(Metrics, ALossThatOverflowedIsLeftOut) {
  MetricsAccumulator metrics;
  const auto line = metrics.OnCommit(CommitOf(2, 1s, std::nan("")));
  ASSERT_TRUE(line);
  EXPECT_THAT(*line, Not(HasSubstr("loss")));
}

}  // namespace
}  // namespace pliant
