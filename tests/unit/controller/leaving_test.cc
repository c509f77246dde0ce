#include "operator/controller/lifecycle/leaving.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/controller/job_fixture.h"

namespace pliant::controller {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::Pair;

TEST(Leaving, TellsTrainingLearnersToGoAndDeletesThemAfterTheirGrace) {
  JobView view = TrainingView(2);
  const Leaving told = DecideLeaving(view, {.drop = {Name(1)}}, At(10));
  EXPECT_THAT(told.deletions, IsEmpty());
  EXPECT_THAT(told.leaving_since, ElementsAre(Pair(Name(1), At(10))));
  EXPECT_EQ(told.look_again, At(70));

  view.soft_state.clocks.leaving_since = told.leaving_since;
  const Leaving overdue = DecideLeaving(view, {}, At(70));
  EXPECT_THAT(overdue.deletions, ElementsAre(DeletePod{Name(1), "uid-1", std::chrono::seconds(15),
                                                       "did not leave within its grace period"}));
}

TEST(Leaving, AsksNobodyToLeaveWhileTheCoordinatorIsUnreachable) {
  JobView view = TrainingView(2);
  view.learners.push_back(Learner(2, Life::kGated));
  view.coordinator.reachable = false;
  const Leaving outcome = DecideLeaving(view, {.drop = {Name(1), Name(2)}}, At(10));
  EXPECT_THAT(outcome.leaving_since, IsEmpty());
  EXPECT_THAT(outcome.deletions,
              ElementsAre(DeletePod{Name(2), "uid-2", std::nullopt, "no longer granted"}))
      << "one that does not run yet is not part of any membership";
}

TEST(Leaving, ALearnerThatCannotBeAskedToLeaveIsDeletedAfterAWhile) {
  JobView view = TrainingView(2);
  view.coordinator.reachable = false;
  const planner::Decision plan{.drop = {Name(1)}};
  Leaving outcome = DecideLeaving(view, plan, At(10));
  EXPECT_THAT(outcome.deletions, IsEmpty());
  EXPECT_THAT(outcome.unnotified_since, ElementsAre(Pair(Name(1), At(10))));
  EXPECT_EQ(outcome.look_again, At(10 + 60 + 60)) << "its grace, and a minute";
  view.soft_state.clocks.unnotified_since = outcome.unnotified_since;
  outcome = DecideLeaving(view, plan, At(130));
  EXPECT_THAT(outcome.deletions,
              ElementsAre(DeletePod{Name(1), "uid-1", std::nullopt,
                                    "its coordinator is unreachable and cannot ask it to leave"}));
  view.coordinator.reachable = true;
  outcome = DecideLeaving(view, plan, At(130));
  EXPECT_THAT(outcome.deletions, IsEmpty());
  EXPECT_THAT(outcome.unnotified_since, IsEmpty());
  EXPECT_THAT(outcome.leaving_since, ElementsAre(Pair(Name(1), At(130)))) << "it has its grace";
}

TEST(Leaving, DoesNotWaitForALearnerThatNeverReachedTheCoordinator) {
  JobView view = TrainingView(2);
  view.soft_state.contacts.met.erase("uid-1");
  EXPECT_THAT(DecideLeaving(view, {.drop = {Name(1)}}, At(10)).deletions,
              ElementsAre(DeletePod{Name(1), "uid-1", std::nullopt, "no longer granted"}));
}

TEST(Leaving, IgnoresReportedLearnersThatNeverExisted) {
  JobView view = TrainingView(1);
  Edit(view.job).status.objects.next_learner = 3;
  const std::string made = Name(2);
  for (const std::string& name : {made, Name(3), std::string("stranger"), std::string(""),
                                  std::string("digits-1a2b3-02"), std::string("x-2")}) {
    Edit(view.coordinator.progress)
        .learners.push_back({.name = name, .pod_uid = "u", .state = "Member"});
  }
  view.soft_state.contacts.gone = {"u"};
  EXPECT_THAT(DecideLeaving(view, {}, At(10)).plan,
              ElementsAre(PlannedLearner{Name(0), "uid-0", DesiredLearnerState::kWanted},
                          PlannedLearner{made, "u", DesiredLearnerState::kEnded}));
}

TEST(Leaving, TheCoordinatorHearsOfAllThatExistAndAllThatAreGone) {
  JobView view = TrainingView(3);
  Edit(view.job).status.objects.next_learner = 10;
  view.learners[1] = Deleting(view.learners[1]);
  view.learners[2] = Learner(2, Life::kFailed);
  view.learners.push_back(Learner(3, Life::kGated));
  view.learners.push_back(Learner(4, Life::kGated));
  view.learners.back().meta.uid.clear();           // its creation is in flight
  for (const char* state : {"Member", "Ready"}) {  // force-deleted after it had joined again
    Edit(view.coordinator.progress)
        .learners.push_back({.name = Name(9), .pod_uid = "uid-9", .state = state});
  }
  view.soft_state.contacts.gone = {"uid-9"};
  EXPECT_THAT(DecideLeaving(view, {}, At(10)).plan,
              ElementsAre(PlannedLearner{Name(0), "uid-0", DesiredLearnerState::kWanted},
                          PlannedLearner{Name(1), "uid-1", DesiredLearnerState::kLeaving},
                          PlannedLearner{Name(2), "uid-2", DesiredLearnerState::kEnded},
                          PlannedLearner{Name(3), "uid-3", DesiredLearnerState::kWanted},
                          PlannedLearner{Name(9), "uid-9", DesiredLearnerState::kEnded}));
  view.soft_state.clocks.leaving_since = {{Name(0), At(1)}};
  EXPECT_EQ(DecideLeaving(view, {}, At(10)).plan[0].state, DesiredLearnerState::kLeaving);
}

TEST(Leaving, OneThatNobodyHasSeenEndStaysWhatItIs) {
  JobView view = TrainingView(1);
  Edit(view.job).status.objects.next_learner = 9;
  auto& named = Edit(view.coordinator.progress).learners;
  named.push_back({.name = Name(5), .pod_uid = "uid-5", .state = "Member"});
  named.push_back({.name = Name(6), .pod_uid = "uid-6", .state = "Leaving"});
  EXPECT_THAT(DecideLeaving(view, {}, At(10)).plan,
              ElementsAre(PlannedLearner{Name(0), "uid-0", DesiredLearnerState::kWanted},
                          PlannedLearner{Name(5), "uid-5", DesiredLearnerState::kWanted},
                          PlannedLearner{Name(6), "uid-6", DesiredLearnerState::kLeaving}));
}

}  // namespace
}  // namespace pliant::controller
