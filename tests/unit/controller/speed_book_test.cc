#include "operator/controller/model/speed_book.h"

#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "tests/unit/controller/job_fixture.h"

namespace pliant::controller {
namespace {

constexpr std::int64_t kGpusOfNode = 4;
const api::FrozenTraining kTraining{.global_batch_size = 256, .logical_shards = 32};

// A job with so many learners on one node, whose coordinator reports this speed.
JobView Reports(int learners, double samples_per_second, double compute_seconds,
                double period_seconds = 30) {
  JobView view = TrainingView(learners);
  Edit(view.coordinator.progress).speed = ReportedSpeed{.samples_per_second = samples_per_second,
                                                        .compute_seconds = compute_seconds,
                                                        .seconds = period_seconds};
  return view;
}

planner::SpeedCurve CurveAfter(SpeedBook& book, JobView view) {
  book.Observe(view, kTraining, kGpusOfNode, At(0));
  return view.soft_state.speed.curve;
}

TEST(SpeedBook, NothingIsKnownBeforeAMembershipIsSteady) {
  SpeedBook book;
  EXPECT_EQ(CurveAfter(book, TrainingView(1)), planner::SpeedCurve{});
  EXPECT_EQ(CurveAfter(book, Reports(1, 1000, 0.25, /*seconds=*/9.9)), planner::SpeedCurve{});
  JobView resizes = Reports(1, 1000, 0.25);
  Edit(resizes.coordinator.progress).state = CoordinatorState::kResizing;
  EXPECT_EQ(CurveAfter(book, resizes), planner::SpeedCurve{});
  JobView unknown_pod = Reports(1, 1000, 0.25);
  unknown_pod.learners.clear();
  EXPECT_EQ(CurveAfter(book, unknown_pod), planner::SpeedCurve{});
}

// At 1 learner a step of 256 samples takes 0.256 s, of which 0.25 s are computation.
TEST(SpeedBook, OneSizeOffersTwiceAsMany) {
  SpeedBook book;
  JobView view = Reports(1, 1000, 0.25);
  book.Observe(view, kTraining, kGpusOfNode, At(0));
  const planner::SpeedCurve& curve = view.soft_state.speed.curve;
  ASSERT_EQ(curve.size(), 2u);
  EXPECT_EQ(curve[0], 1000);
  EXPECT_NEAR(curve[1], 2000, 50) << "nothing says that an exchange takes time";
  EXPECT_NEAR(view.soft_state.speed.alone_seconds_per_step, 0.256, 1e-9);
}

TEST(SpeedBook, MeasuredSizesAreWhatTheyAre) {
  SpeedBook book;
  CurveAfter(book, Reports(1, 1000, 0.25));
  CurveAfter(book, Reports(2, 1500, 0.13));
  const planner::SpeedCurve curve = CurveAfter(book, Reports(4, 2000, 0.07));
  ASSERT_EQ(curve.size(), 8u);
  EXPECT_EQ(curve[0], 1000);
  EXPECT_NEAR(curve[1], 1500, 2);
  EXPECT_NEAR(curve[3], 2000, 2);
  EXPECT_GT(curve[2], curve[1]);
  EXPECT_LT(curve[2], curve[3]);
}

TEST(SpeedBook, AJobHasNoMoreSizesThanItsMaximum) {
  SpeedBook book;
  JobView view = Reports(4, 4000, 0.06);
  Edit(view.job).spec.elastic.max_learners = 5;
  EXPECT_EQ(CurveAfter(book, view).size(), 5u);
}

// With 32 shards, the busiest of 9 or 10 learners has as many as the busiest of 8.
TEST(SpeedBook, ABitwiseJobIsAsFastAsItsBusiestLearner) {
  SpeedBook book;
  JobView view = Reports(8, 8000, 0.03);
  Edit(view.job).spec.elastic.max_learners = 16;
  const planner::SpeedCurve curve = CurveAfter(book, view);
  ASSERT_EQ(curve.size(), 16u);
  EXPECT_EQ(curve[8], curve[7]);
  EXPECT_EQ(curve[9], curve[7]);
  EXPECT_GT(curve[10], curve[7]);
}

TEST(SpeedBook, JobsWithAnEqualTemplateShareWithinTheirNamespace) {
  SpeedBook book;
  CurveAfter(book, Reports(4, 2000, 0.07));
  JobView waits{.job = Shared(AdmittedJob(0))};
  EXPECT_EQ(CurveAfter(book, waits).size(), 8u);
  JobView elsewhere = waits;
  Edit(elsewhere.job).meta.name_space = "team-b";
  EXPECT_TRUE(CurveAfter(book, elsewhere).empty());
  JobView other = waits;
  SetTemplate(R"({"spec":{"containers":[{"name":"learner","image":"example/train:2"}]}})",
              Edit(other.job).spec);
  EXPECT_TRUE(CurveAfter(book, other).empty());
  JobView other_batch = waits;
  book.Observe(other_batch, {.global_batch_size = 512, .logical_shards = 32}, kGpusOfNode, At(0));
  EXPECT_TRUE(other_batch.soft_state.speed.curve.empty());
}

TEST(SpeedBook, NoiseChangesNoCurve) {
  SpeedBook book;
  const planner::SpeedCurve before = CurveAfter(book, Reports(2, 1000, 0.2));
  for (const double noise : {0.95, 1.05, 0.93, 1.07, 1.0, 0.94}) {
    EXPECT_EQ(CurveAfter(book, Reports(2, 1000 * noise, 0.2 / noise)), before) << noise;
  }
}

TEST(SpeedBook, ANewLeaderReadsTheStatus) {
  SpeedBook book;
  JobView first = Reports(2, 1523, 0.1357);
  book.Observe(first, kTraining, kGpusOfNode, At(0));
  const std::vector<api::MeasuredSpeed> written = {
      {.learners = 2, .nodes = 1, .samples_per_second = 1500, .compute_seconds = 0.14}};
  EXPECT_EQ(first.soft_state.speed.measured, written);

  SpeedBook of_next_leader;
  JobView view{.job = Shared(AdmittedJob(0))};
  Edit(view.job).status.progress.speeds = written;
  EXPECT_EQ(CurveAfter(of_next_leader, view).size(), 4u);
}

api::FrozenTraining Grown() {
  api::FrozenTraining training = kTraining;
  training.global_batch_size *= 2;
  training.logical_shards *= 2;
  training.max_batch_size = 1024;
  return training;
}

TEST(SpeedBook, AGrownBatchHasSpeedsOfItsOwn) {
  SpeedBook book;
  JobView view = Reports(1, 1000, 0.25);
  book.Observe(view, kTraining, kGpusOfNode, At(0));
  const planner::SpeedCurve before = view.soft_state.speed.curve;
  const double& alone = view.soft_state.speed.alone_seconds_per_step;
  book.Observe(view, Grown(), kGpusOfNode, At(0));
  EXPECT_EQ(view.soft_state.speed.curve, before) << "until one is measured";
  EXPECT_NEAR(alone, 0.512, 1e-9);
  view.coordinator = Reports(1, 1024, 0.49).coordinator;
  book.Observe(view, Grown(), kGpusOfNode, At(0));
  EXPECT_NEAR(alone, 0.5, 1e-9);
  EXPECT_EQ(book.kinds(), 2u);
}

TEST(SpeedBook, ANewLeaderKnowsTheBatchOfAStatusFromTheCoordinator) {
  JobView view = TrainingView(1);
  Edit(view.job).status.progress.speeds = {
      {.learners = 1, .nodes = 1, .samples_per_second = 1024, .compute_seconds = 0.49}};
  view.coordinator = {};
  api::FrozenTraining at_first = kTraining;
  at_first.max_batch_size = 1024;
  SpeedBook book;
  book.Observe(view, at_first, kGpusOfNode, At(0));
  EXPECT_TRUE(view.soft_state.speed.curve.empty()) << "of which batch?";
  view.coordinator = Training({0});
  book.Observe(view, Grown(), kGpusOfNode, At(0));
  EXPECT_NEAR(view.soft_state.speed.alone_seconds_per_step, 0.5, 1e-9);
}

TEST(SpeedBook, DoesNotLearnImpossibleSpeeds) {
  SpeedBook book;
  JobView view{.job = Shared(AdmittedJob(0))};
  Edit(view.job).status.progress.speeds = {{1, 1, 0, 1},      {1, 1, -1, 1}, {1, 1, 1, 0},
                                           {1, 1, 1e-320, 1}, {0, 1, 1, 1},  {1, 0, 1, 1}};
  EXPECT_TRUE(CurveAfter(book, view).empty());
}

// Extreme values are no measurements, and large ones claim no more than an honest job could.
TEST(SpeedBook, ALyingProgramHarmsOnlyItself) {
  SpeedBook book;
  for (const double extreme : {1e-310, 1e-160, 1e-9, 1e9, 1e160, 1e308}) {
    EXPECT_TRUE(CurveAfter(book, Reports(1, extreme, 0.1)).empty()) << extreme;
    EXPECT_TRUE(CurveAfter(book, Reports(1, 256 / extreme, extreme)).empty()) << extreme;
  }
  CurveAfter(book, Reports(1, 1, 200));
  CurveAfter(book, Reports(2, 1000, 0.1));
  const planner::SpeedCurve curve = CurveAfter(book, Reports(4, 100'000, 0.001));
  ASSERT_EQ(curve.size(), 8u);
  for (int learners = 1; learners <= 8; ++learners) {
    EXPECT_LE(planner::SpeedWith(curve, learners), 1000 * learners);
    EXPECT_GE(planner::SpeedWith(curve, learners), 1);
  }
}

TEST(SpeedBook, AMemberCountsOnce) {
  SpeedBook book;
  JobView view = Reports(1, 1000, 0.25);
  Edit(view.coordinator.progress).members.assign(4096, Name(0));
  EXPECT_EQ(CurveAfter(book, view).size(), 2u);
  EXPECT_EQ(view.job->spec.elastic.max_learners, 8);
}

TEST(SpeedBook, AReportCountsOnce) {
  SpeedBook book;
  CurveAfter(book, Reports(1, 1000, 0.25));
  JobView slower = Reports(1, 800, 0.3);
  for (int look = 0; look < 100; ++look) book.Observe(slower, kTraining, kGpusOfNode, At(0));
  // The mean of the two reports: by 12.5 % another time.
  EXPECT_NEAR(slower.soft_state.speed.alone_seconds_per_step, (0.256 + 0.32) / 2, 1e-9);
}

// The product is known once the job trains.
TEST(SpeedBook, AJobThatHasNoProductYetBeginsWithTheCurveOfAnother) {
  SpeedBook book;
  JobView trains = Reports(4, 2000, 0.07);
  Edit(trains.job).status.gpu_product = "H100";
  CurveAfter(book, trains);
  JobView waits{.job = Shared(AdmittedJob(0))};
  EXPECT_EQ(CurveAfter(book, waits).size(), 8u);
  Edit(waits.job).status.gpu_product = "L4";
  waits.soft_state = {};
  EXPECT_TRUE(CurveAfter(book, waits).empty()) << "another product";
}

TEST(SpeedBook, WithoutNodesTheCurveStays) {
  SpeedBook book;
  JobView view = Reports(2, 1000, 0.25);
  book.Observe(view, kTraining, 0, At(0));
  EXPECT_TRUE(view.soft_state.speed.curve.empty());
  book.Observe(view, kTraining, kGpusOfNode, At(1));
  const planner::SpeedCurve curve = view.soft_state.speed.curve;
  EXPECT_EQ(curve.size(), 4u);
  book.Observe(view, kTraining, 0, At(2));
  EXPECT_EQ(view.soft_state.speed.curve, curve);
}

JobView OfTemplate(int number) {
  JobView view = Reports(1, 1000, 0.25);
  SetTemplate(R"({"spec":{"containers":[{"name":"learner","image":"example/train:)" +
                  std::to_string(number) + R"("}]}})",
              Edit(view.job).spec);
  return view;
}

TEST(SpeedBook, ANamespaceHasABoundedNumberOfUnusedKinds) {
  SpeedBook book;
  JobView other = Reports(1, 1000, 0.25);
  Edit(other.job).meta.name_space = "team-b";
  for (int number = 0; number < 1000; ++number) {
    book.Observe(other, kTraining, kGpusOfNode, At(100 * number));
    JobView view = OfTemplate(number);
    book.Observe(view, kTraining, kGpusOfNode, At(100 * number));
  }
  EXPECT_LE(book.kinds(), SpeedBook::kMaxKindsOfNamespace + 1);
  EXPECT_FALSE(other.soft_state.speed.curve.empty());
}

// Each of many jobs that train keeps what it has measured.
TEST(SpeedBook, JobsThatTrainDoNotDropEachOthersKinds) {
  SpeedBook book;
  std::vector<JobView> views;
  for (int number = 0; number < 200; ++number) views.push_back(OfTemplate(number));
  for (int round = 0; round < 3; ++round) {
    for (JobView& view : views) book.Observe(view, kTraining, kGpusOfNode, At(round));
  }
  EXPECT_EQ(book.kinds(), 200u);
  for (const JobView& view : views) EXPECT_EQ(view.soft_state.speed.curve.size(), 2u);
}

TEST(SpeedBook, ForgetsCurvesThatNobodyUses) {
  SpeedBook book;
  for (int number = 0; number < 50; ++number) {
    JobView view = OfTemplate(number);
    book.Observe(view, kTraining, kGpusOfNode, At(0));
  }
  JobView later = OfTemplate(1000);
  book.Observe(later, kTraining, kGpusOfNode, At(2 * 3600));
  EXPECT_EQ(book.kinds(), 1u);
}

}  // namespace
}  // namespace pliant::controller
