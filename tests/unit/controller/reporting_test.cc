#include "operator/controller/model/reporting.h"

#include <gtest/gtest.h>

#include "tests/unit/controller/job_fixture.h"

namespace pliant::controller {
namespace {

TEST(Reporting, AStatusThatWasNotWrittenWasNotReported) {
  const LastReported before{.at = At(5), .reason = planner::ReasonCode::kFairShare};
  Reporting reporting{.last = {.at = At(9)}};
  EXPECT_FALSE(OnStatusWritten({}, nullptr, before, reporting));
  EXPECT_EQ(reporting.last, before);
}

TEST(Reporting, ADroppedNumberOfLearnersAskedIsNewsOnce) {
  const struct {
    const char* name;
    std::optional<int> sent;
    std::optional<int> kept;
    bool news;
    std::optional<int> dropped;
  } kSteps[] = {
      {"nothing was sent", {}, {}, false, {}},
      {"dropped", 4, {}, true, 4},
      {"again", 4, {}, false, 4},
      {"another", 6, {}, true, 6},
      {"nothing more is sent", {}, {}, false, 6},
      {"the definition is of this version now", 6, 6, false, {}},
  };
  Reporting reporting;
  for (const auto& step : kSteps) {
    api::JobStatus sent, kept;
    sent.progress.learners_asked = step.sent;
    kept.progress.learners_asked = step.kept;
    EXPECT_EQ(OnStatusWritten(sent, &kept, {}, reporting), step.news) << step.name;
    EXPECT_EQ(reporting.learners_asked_dropped, step.dropped) << step.name;
  }
}

TEST(Reporting, ADroppedNumberCountsUntilTheProgramAsksForAnother) {
  Reporting reporting{.learners_asked_dropped = 4};
  ObserveReported(nullptr, reporting);
  Progress progress{.learners_asked = 6};
  ObserveReported(&progress, reporting);
  EXPECT_EQ(reporting.learners_asked_dropped, 4)
      << "no learner has reported to the coordinator yet";
  progress = {.total_steps = 100, .learners_asked = 4};
  ObserveReported(&progress, reporting);
  EXPECT_EQ(reporting.learners_asked_dropped, 4);
  progress.learners_asked = 6;
  ObserveReported(&progress, reporting);
  EXPECT_FALSE(reporting.learners_asked_dropped);
}

TEST(Reporting, WritesHaveARateLimitThatAllowsBursts) {
  WriteBudget budget{.writes = 0};
  EXPECT_EQ(WhenWriteIsLeft(At(0), budget), At(2));
  EXPECT_EQ(WhenWriteIsLeft(At(1), budget), At(2));
  EXPECT_FALSE(WhenWriteIsLeft(At(2), budget));
  EXPECT_FALSE(WhenWriteIsLeft(At(1000), budget));
  EXPECT_EQ(budget.writes, WriteBudget{}.writes);
}

}  // namespace
}  // namespace pliant::controller
