#include "operator/controller/lifecycle/failure_policy.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/controller/job_fixture.h"

namespace pliant::controller {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

const api::FailurePolicy kPolicy{.max_failures = 2, .permanent_exit_codes = {2}};

api::Pod Failed(int number, int exit_code = 1) {
  return Ended(Learner(number, Life::kRunning), exit_code, "oops");
}

struct FailureCase {
  const char* name;
  api::FailureCount before;
  std::int64_t step;
  std::vector<api::Pod> learners;
  int count;
  int newly;
  std::vector<int> counted;
  std::string fatal;
};

TEST(FailurePolicy, CountsEachFailureOnceUntilAStepIsCommitted) {
  const FailureCase kCases[] = {
      {"nothing failed", {}, 5, {Learner(0, Life::kRunning)}, 0, 0, {}, ""},
      {"the first", {}, 5, {Failed(3)}, 1, 1, {3}, ""},
      {"seen before", {.count = 1, .step = 5, .counted = {3}}, 5, {Failed(3)}, 1, 0, {3}, ""},
      {"a second",
       {.count = 1, .step = 5, .counted = {3}},
       5,
       {Failed(3), Failed(4)},
       2,
       1,
       {3, 4},
       ""},
      {"its pod is deleted", {.count = 1, .step = 5, .counted = {3}}, 5, {}, 1, 0, {}, ""},
      {"progress forgives", {.count = 2, .step = 5, .counted = {3}}, 6, {Failed(3)}, 0, 0, {3}, ""},
      {"progress, then a failure",
       {.count = 2, .step = 5, .counted = {3}},
       6,
       {Failed(3), Failed(4)},
       1,
       1,
       {3, 4},
       ""},
      {"too many",
       {.count = 2, .step = 5, .counted = {3, 4}},
       5,
       {Failed(5)},
       3,
       1,
       {5},
       "TooManyFailures"},
      {"permanent", {}, 5, {Failed(3, 2)}, 1, 1, {3}, "PermanentExitCode"},
      {"disruptions never count", {}, 5, {Deleting(Failed(3))}, 0, 0, {}, ""},
  };
  for (const FailureCase& c : kCases) {
    const FailureVerdict verdict =
        JudgeFailures(kPolicy, c.before, std::nullopt, c.step, c.learners);
    EXPECT_EQ(verdict.failures.count, c.count) << c.name;
    EXPECT_EQ(verdict.newly_failed, c.newly) << c.name;
    EXPECT_EQ(verdict.failures.counted, c.counted) << c.name;
    EXPECT_EQ(verdict.fatal ? verdict.fatal->reason : "", c.fatal) << c.name;
  }
}

// One look at a job: its committed step, and the number of learners whose failure is new.
struct Look {
  std::int64_t step;
  int failed = 0;
};

struct RestoreCase {
  const char* name;
  std::vector<Look> looks;
  int count;
  std::string fatal = "";
};

TEST(FailurePolicy, StepsThatAreDoneAgainAfterARestoreCount) {
  const RestoreCase kCases[] = {
      {"a failure elsewhere after a restore", {{100, 2}, {50}, {70}, {70, 1}}, 1},
      {"two, at one look", {{100, 2}, {50}, {70, 2}}, 2},
      {"a failure right after a restore", {{100, 2}, {50, 1}}, 3, "TooManyFailures"},
      {"the same, seen later", {{100, 2}, {50}, {50, 1}}, 3, "TooManyFailures"},
      {"the same step again, in a circle", {{100, 2}, {50}, {70}, {100, 1}}, 3, "TooManyFailures"},
      {"beyond that step", {{100, 2}, {50}, {70}, {101}, {101, 1}}, 1},
      {"no failure since the restore: nothing is forgiven yet", {{100, 2}, {50}, {70}}, 2},
      {"each failure has a restore of its own",
       {{100, 2}, {50}, {70, 1}, {70, 1}, {70, 1}},
       3,
       "TooManyFailures"},
  };
  for (const RestoreCase& c : kCases) {
    FailureVerdict verdict;
    std::optional<std::int64_t> lowest;
    int number = 0;
    for (const Look& look : c.looks) {
      std::vector<api::Pod> learners;
      for (int i = 0; i < look.failed; ++i) learners.push_back(Failed(number++));
      verdict = JudgeFailures(kPolicy, verdict.failures, lowest, look.step, learners);
      lowest = verdict.lowest_step;
    }
    EXPECT_EQ(verdict.failures.count, c.count) << c.name;
    EXPECT_EQ(verdict.fatal ? verdict.fatal->reason : "", c.fatal) << c.name;
  }
}

// A restart of the operator loses only one fact: how far the job went back.
TEST(FailurePolicy, AfterARestartOfTheOperatorProgressCountsFromWhatItFinds) {
  const api::FailureCount before{.count = 2, .step = 100, .counted = {3}};
  const FailureVerdict found = JudgeFailures(kPolicy, before, std::nullopt, 70, {Failed(4)});
  EXPECT_EQ(found.failures.count, 3);
  const FailureVerdict later = JudgeFailures(kPolicy, before, 70, 71, {Failed(4)});
  EXPECT_EQ(later.failures.count, 1);
}

TEST(FailurePolicy, SaysWhatBefellTheLearner) {
  const FailureVerdict verdict = JudgeFailures(kPolicy, {}, std::nullopt, 0, {Failed(3, 2)});
  EXPECT_EQ(verdict.fatal->message, "learner digits-1a2b3-3 exited with code 2: oops");
}

api::Pod Refused(int number) {
  api::Pod pod = Learner(number, Life::kGated);
  pod.phase = api::PodPhase::kFailed;
  pod.reason = "UnexpectedAdmissionError";
  return pod;
}

std::vector<std::string> Collected(const std::vector<api::Pod>& learners,
                                   const std::vector<int>& counted,
                                   api::JobPhase phase = api::JobPhase::kRunning) {
  const api::JobStatus status{.phase = phase, .failures = {.counted = counted}};
  std::vector<std::string> names;
  for (const api::Pod* pod : PodsToCollect(learners, status)) names.push_back(pod->meta.name);
  return names;
}

TEST(FailurePolicy, KeepsTheLastThreeFailedPodsForTheirLogs) {
  const std::vector<api::Pod> learners = {Failed(1), Failed(2), Failed(3), Failed(4), Failed(5)};
  EXPECT_THAT(Collected(learners, {1, 2, 3, 4, 5}), ElementsAre(Name(1), Name(2)));
  EXPECT_THAT(Collected(learners, {1, 2, 3}), IsEmpty()) << "4 and 5 are not counted yet";
  EXPECT_THAT(Collected(learners, {1, 2, 3}, api::JobPhase::kFailed), ElementsAre(Name(1), Name(2)))
      << "failures are no longer counted";
}

TEST(FailurePolicy, PodsWithoutLogsTakeNoPlaceOfThoseWithLogs) {
  EXPECT_THAT(Collected({Failed(1), Refused(2), Refused(3), Refused(4)}, {1}),
              ElementsAre(Name(2)));
  EXPECT_THAT(Collected({Failed(1), Failed(2), Failed(3), Failed(4), Refused(5)}, {1, 2, 3, 4}),
              ElementsAre(Name(1), Name(5)));
  EXPECT_THAT(Collected({Refused(1), Refused(2), Refused(3)}, {}), IsEmpty())
      << "they tell an administrator about the node";
}

TEST(FailurePolicy, CollectsLearnersThatWereAskedToLeave) {
  const std::vector<api::Pod> learners = {
      Learner(1, Life::kRunning), Learner(2, Life::kSucceeded),
      Ended(Learner(3, Life::kRunning), 0, R"({"reason":"Completed"})"),
      Deleting(Learner(4, Life::kSucceeded))};
  EXPECT_THAT(Collected(learners, {}), ElementsAre(Name(2)));
}

}  // namespace
}  // namespace pliant::controller
