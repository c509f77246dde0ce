#include "operator/controller/lifecycle/learner_policy.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/controller/job_fixture.h"

namespace pliant::controller {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::Pair;

JobPlan PlanOf(planner::Decision decision, std::vector<std::string> open = {}) {
  return {.decision = std::move(decision), .open = std::move(open)};
}

TEST(LearnerPolicy, CreatesWhatIsGrantedUnderNewNumbers) {
  JobView view = TrainingView(2);
  const LearnerOutcome outcome =
      DecideLearners(view, PlanOf({.create = {{"gpu-1"}, {"gpu-2"}}}), At(10));
  EXPECT_EQ(outcome.next_learner, 4);
  EXPECT_THAT(outcome.actions, ElementsAre(Action(CreateLearner{2, {"gpu-1"}, "10.0.0.7"}),
                                           Action(CreateLearner{3, {"gpu-2"}, "10.0.0.7"})));
}

TEST(LearnerPolicy, NumbersPassThoseOfPodsThatExist) {
  JobView view = TrainingView(2);
  Edit(view.job).status.next_learner = 0;  // restored from a backup
  const LearnerOutcome outcome = DecideLearners(view, PlanOf({.create = {{"gpu-1"}}}), At(10));
  EXPECT_EQ(outcome.next_learner, 3);
}

TEST(LearnerPolicy, WaitsForTheServicesAddress) {
  JobView view = TrainingView(0);
  view.service.reset();
  const LearnerOutcome outcome = DecideLearners(view, PlanOf({.create = {{"gpu-1"}}}), At(10));
  EXPECT_THAT(outcome.actions, IsEmpty());
  EXPECT_EQ(outcome.next_learner, 0);
}

// As after a restart of the operator.
TEST(LearnerPolicy, NobodyIsMadeForATrainingThatMayBeComplete) {
  JobView view = TrainingView(1);
  view.learners[0] = Ended(view.learners[0], 0, R"({"reason":"Completed"})");
  view.soft_state.contacts.named.clear();
  view.coordinator.progress = nullptr;
  EXPECT_THAT(DecideLearners(view, PlanOf({.create = {{"gpu-1"}}}), At(10)).actions, IsEmpty());
  view.coordinator = Training({});
  EXPECT_EQ(DecideLearners(view, PlanOf({.create = {{"gpu-1"}}}), At(10)).actions.size(), 1u)
      << "the coordinator knows nothing of it";
}

TEST(LearnerPolicy, OpensGatesAndKeepsThoseOfOthers) {
  JobView view = TrainingView(0);
  view.learners = {Learner(0, Life::kGated)};
  view.learners[0].scheduling_gates.push_back("theirs");
  EXPECT_THAT(DecideLearners(view, PlanOf({}, {Name(0)}), At(10)).actions,
              ElementsAre(Action(OpenGate{Name(0), "uid-0", "7", {"theirs"}})));
  view.learners = {Learner(0, Life::kRunning), Deleting(Learner(1, Life::kGated))};
  EXPECT_THAT(DecideLearners(view, PlanOf({}, {Name(0), Name(1), "unknown"}), At(10)).actions,
              IsEmpty());
}

TEST(LearnerPolicy, TellsTrainingLearnersToGoAndDeletesThemAfterTheirGrace) {
  JobView view = TrainingView(2);
  const LearnerOutcome told = DecideLearners(view, PlanOf({.drop = {Name(1)}}), At(10));
  EXPECT_THAT(told.actions, IsEmpty());
  EXPECT_THAT(told.leaving_since, ElementsAre(Pair(Name(1), At(10))));
  EXPECT_EQ(told.look_again, At(70));

  view.soft_state.clocks.leaving_since = told.leaving_since;
  const LearnerOutcome overdue = DecideLearners(view, PlanOf({}), At(70));
  EXPECT_THAT(overdue.actions,
              ElementsAre(Action(DeletePod{Name(1), "uid-1", std::chrono::seconds(15),
                                           "did not leave within its grace period"})));
}

TEST(LearnerPolicy, NobodyIsToldToGoWhileTheCoordinatorCannotBeReached) {
  JobView view = TrainingView(2);
  view.learners.push_back(Learner(2, Life::kGated));
  view.coordinator.reachable = false;
  const LearnerOutcome outcome = DecideLearners(view, PlanOf({.drop = {Name(1), Name(2)}}), At(10));
  EXPECT_THAT(outcome.leaving_since, IsEmpty());
  EXPECT_THAT(outcome.actions,
              ElementsAre(Action(DeletePod{Name(2), "uid-2", std::nullopt, "no longer granted"})))
      << "one that does not run yet is not part of any membership";
}

TEST(LearnerPolicy, WhoCannotBeToldToGoIsDeletedAfterAWhile) {
  JobView view = TrainingView(2);
  view.coordinator.reachable = false;
  const JobPlan plan = PlanOf({.drop = {Name(1)}});
  LearnerOutcome outcome = DecideLearners(view, plan, At(10));
  EXPECT_THAT(outcome.actions, IsEmpty());
  EXPECT_THAT(outcome.unnotified_since, ElementsAre(Pair(Name(1), At(10))));
  EXPECT_EQ(outcome.look_again, At(10 + 60 + 60)) << "its grace, and a minute";
  view.soft_state.clocks.unnotified_since = outcome.unnotified_since;
  outcome = DecideLearners(view, plan, At(130));
  EXPECT_THAT(
      outcome.actions,
      ElementsAre(Action(DeletePod{Name(1), "uid-1", std::nullopt,
                                   "its coordinator is unreachable and cannot ask it to leave"})));
  view.coordinator.reachable = true;
  outcome = DecideLearners(view, plan, At(130));
  EXPECT_THAT(outcome.actions, IsEmpty());
  EXPECT_THAT(outcome.unnotified_since, IsEmpty());
  EXPECT_THAT(outcome.leaving_since, ElementsAre(Pair(Name(1), At(130)))) << "it has its grace";
}

TEST(LearnerPolicy, WhoNeverSpokeToTheCoordinatorIsNotWaitedFor) {
  JobView view = TrainingView(2);
  view.soft_state.contacts.met.erase("uid-1");
  EXPECT_THAT(DecideLearners(view, PlanOf({.drop = {Name(1)}}), At(10)).actions,
              ElementsAre(Action(DeletePod{Name(1), "uid-1", std::nullopt, "no longer granted"})));
}

TEST(LearnerPolicy, OfLearnersThatNeverWereACoordinatorMaySpeakInVain) {
  JobView view = TrainingView(1);
  Edit(view.job).status.next_learner = 3;
  const std::string made = Name(2);
  for (const std::string& name : {made, Name(3), std::string("stranger"), std::string(""),
                                  std::string("digits-1a2b3-02"), std::string("x-2")}) {
    Edit(view.coordinator.progress)
        .learners.push_back({.name = name, .pod_uid = "u", .state = "Member"});
  }
  view.soft_state.contacts.gone = {"u"};
  EXPECT_THAT(WantedLearners(view, {}),
              ElementsAre(PlannedLearner{Name(0), "uid-0", DesiredLearnerState::kWanted},
                          PlannedLearner{made, "u", DesiredLearnerState::kEnded}));
}

TEST(LearnerPolicy, TheCoordinatorHearsOfAllThatExistAndAllThatAreGone) {
  JobView view = TrainingView(3);
  Edit(view.job).status.next_learner = 10;
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
  EXPECT_THAT(WantedLearners(view, {}),
              ElementsAre(PlannedLearner{Name(0), "uid-0", DesiredLearnerState::kWanted},
                          PlannedLearner{Name(1), "uid-1", DesiredLearnerState::kLeaving},
                          PlannedLearner{Name(2), "uid-2", DesiredLearnerState::kEnded},
                          PlannedLearner{Name(3), "uid-3", DesiredLearnerState::kWanted},
                          PlannedLearner{Name(9), "uid-9", DesiredLearnerState::kEnded}));
  EXPECT_EQ(WantedLearners(view, {{Name(0), At(1)}})[0].state, DesiredLearnerState::kLeaving);
}

// A watch may be a minute behind, so the coordinator may know of learners earlier than the
// operator.
TEST(LearnerPolicy, OneThatNobodyHasSeenEndStaysWhatItIs) {
  JobView view = TrainingView(1);
  Edit(view.job).status.next_learner = 9;
  auto& named = Edit(view.coordinator.progress).learners;
  named.push_back({.name = Name(5), .pod_uid = "uid-5", .state = "Member"});
  named.push_back({.name = Name(6), .pod_uid = "uid-6", .state = "Leaving"});
  EXPECT_THAT(WantedLearners(view, {}),
              ElementsAre(PlannedLearner{Name(0), "uid-0", DesiredLearnerState::kWanted},
                          PlannedLearner{Name(5), "uid-5", DesiredLearnerState::kWanted},
                          PlannedLearner{Name(6), "uid-6", DesiredLearnerState::kLeaving}));
}

TEST(LearnerPolicy, TheServerIsAskedAboutPodsThatTheStoresMayNotKnow) {
  JobView view = TrainingView(1);
  Edit(view.job).status.next_learner = 1000;
  EXPECT_THAT(LookForPods(view, At(10)).actions, IsEmpty());
  view.overdue_pods = {Name(3)};
  Edit(view.coordinator.progress)
      .learners.push_back({.name = Name(5), .pod_uid = "uid-5", .state = "Member"});
  const PodSearch search = LookForPods(view, At(10));
  EXPECT_THAT(search.actions, ElementsAre(LookForPod{Name(3), ""}, LookForPod{Name(5), "uid-5"}));
  // The answers do not arrive at once.
  view.soft_state.contacts.searched_at = search.searched_at;
  EXPECT_THAT(LookForPods(view, At(12)).actions, IsEmpty());
  EXPECT_EQ(LookForPods(view, At(12)).look_again, At(15));
  view.soft_state.contacts.gone = {"uid-5"};
  EXPECT_THAT(LookForPods(view, At(15)).actions, ElementsAre(LookForPod{Name(3), ""}));
  // A coordinator that names a thousand learners does not cause a thousand requests.
  for (int i = 6; i < 1000; ++i) {
    Edit(view.coordinator.progress)
        .learners.push_back({.name = Name(i), .pod_uid = "u", .state = "Member"});
  }
  EXPECT_EQ(LookForPods(view, At(15)).actions.size(), 16u);
}

TEST(LearnerPolicy, ACompletedJobsLearnersMayFinishTheirLastWords) {
  JobView view = TrainingView(1);
  view.learners.push_back(Learner(1, Life::kGated));
  Edit(view.job).status.completion_time = At(100);
  const LearnerOutcome early = TerminateLearners(view, /*completed=*/true, At(101));
  EXPECT_THAT(early.actions,
              ElementsAre(Action(DeletePod{Name(1), "uid-1", {}, "its job has ended"})));
  EXPECT_EQ(early.look_again, At(160));
  EXPECT_EQ(TerminateLearners(view, true, At(160)).actions.size(), 2u);
  EXPECT_EQ(TerminateLearners(view, /*completed=*/false, At(101)).actions.size(), 2u);
}

}  // namespace
}  // namespace pliant::controller
