#include "operator/controller/model/learner_clocks.h"

#include <map>
#include <optional>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "tests/unit/controller/job_fixture.h"

namespace pliant::controller {
namespace {

using Times = std::map<std::string, WallTime>;

TEST(LearnerClocks, ALearnerStartsWhenItsGateIsSeenOpen) {
  const struct {
    const char* name;
    Life before;
    Life now;
    std::optional<double> since;
  } kCases[] = {
      {"waits for its GPU", Life::kGated, Life::kGated, {}},
      {"got it", Life::kGated, Life::kStarting, 5},
      {"starts still", Life::kStarting, Life::kStarting, 1},
      {"runs", Life::kStarting, Life::kRunning, 1},
      {"has failed", Life::kRunning, Life::kFailed, {}},
      {"another one of its name", Life::kRunning, Life::kGated, {}},
  };
  for (const auto& c : kCases) {
    JobView view = TrainingView(0);
    LearnerClocks clocks;
    view.learners = {Learner(0, c.before)};
    ObserveClocks(view, At(1), clocks);
    view.learners = {Learner(0, c.now)};
    ObserveClocks(view, At(5), clocks);
    const Times want = c.since ? Times{{Name(0), At(*c.since)}} : Times{};
    EXPECT_EQ(clocks.starting_since, want) << c.name;
  }
}

TEST(LearnerClocks, ALearnerLeavesFromWhenThatWasSeenFirstUntilItIsGone) {
  JobView view = TrainingView(2);
  LearnerClocks clocks;
  Edit(view.coordinator.progress).learners[1].state = "Leaving";
  ObserveClocks(view, At(1), clocks);
  EXPECT_EQ(clocks.leaving_since, (Times{{Name(1), At(1)}}));
  view.coordinator = {};
  ObserveClocks(view, At(5), clocks);
  EXPECT_EQ(clocks.leaving_since, (Times{{Name(1), At(1)}})) << "its coordinator is silent";
  view.learners[1] = Learner(1, Life::kSucceeded);
  ObserveClocks(view, At(9), clocks);
  EXPECT_TRUE(clocks.leaving_since.empty());
}

TEST(LearnerClocks, AJobIsBelowItsMinimumByThoseThatStay) {
  const struct {
    const char* name;
    int desired;
    std::vector<api::Pod> learners;
    bool leaves;  // the first learner leaves
    bool below;
  } kCases[] = {
      {"enough", 2, {Learner(0, Life::kRunning), Learner(1, Life::kGated)}, false, false},
      {"too few", 2, {Learner(0, Life::kRunning)}, false, true},
      {"one has ended", 2, {Learner(0, Life::kRunning), Learner(1, Life::kFailed)}, false, true},
      {"one leaves", 2, {Learner(0, Life::kRunning), Learner(1, Life::kRunning)}, true, true},
      {"one is deleted",
       2,
       {Learner(0, Life::kRunning), Deleting(Learner(1, Life::kRunning))},
       false,
       true},
      {"it is to have none", 0, {}, false, false},
  };
  for (const auto& c : kCases) {
    JobView view{.job = Shared(AdmittedJob(c.desired))};
    Edit(view.job).spec.elastic.min_learners = 2;
    view.learners = c.learners;
    LearnerClocks clocks;
    if (c.leaves) clocks.leaving_since[Name(0)] = At(0);
    for (const double at : {1, 5}) ObserveClocks(view, At(at), clocks);
    EXPECT_EQ(clocks.below_minimum_since, c.below ? std::optional(At(1)) : std::nullopt) << c.name;
    view.learners = {Learner(2, Life::kRunning), Learner(3, Life::kRunning)};
    ObserveClocks(view, At(9), clocks);
    EXPECT_FALSE(clocks.below_minimum_since) << c.name << ", then enough";
  }
}

}  // namespace
}  // namespace pliant::controller
