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
  const Grants grants = DecideGrants(view, PlanOf({.create = {{"gpu-1"}, {"gpu-2"}}}));
  EXPECT_EQ(grants.next_learner, 4);
  EXPECT_THAT(grants.actions, ElementsAre(Action(CreateLearner{2, {"gpu-1"}, "10.0.0.7"}),
                                          Action(CreateLearner{3, {"gpu-2"}, "10.0.0.7"})));
}

TEST(LearnerPolicy, NumbersPassThoseOfPodsThatExist) {
  JobView view = TrainingView(2);
  Edit(view.job).status.objects.next_learner = 0;  // restored from a backup
  const Grants grants = DecideGrants(view, PlanOf({.create = {{"gpu-1"}}}));
  EXPECT_EQ(grants.next_learner, 3);
}

TEST(LearnerPolicy, WaitsForTheServicesAddress) {
  JobView view = TrainingView(0);
  view.service.reset();
  const Grants grants = DecideGrants(view, PlanOf({.create = {{"gpu-1"}}}));
  EXPECT_THAT(grants.actions, IsEmpty());
  EXPECT_EQ(grants.next_learner, 0);
}

// As after a restart of the operator.
TEST(LearnerPolicy, NobodyIsMadeForATrainingThatMayBeComplete) {
  JobView view = TrainingView(1);
  view.learners[0] = Ended(view.learners[0], 0, R"({"reason":"Completed"})");
  view.soft_state.contacts.named.clear();
  view.coordinator.progress = nullptr;
  EXPECT_THAT(DecideGrants(view, PlanOf({.create = {{"gpu-1"}}})).actions, IsEmpty());
  view.coordinator = Training({});
  EXPECT_EQ(DecideGrants(view, PlanOf({.create = {{"gpu-1"}}})).actions.size(), 1u)
      << "the coordinator knows nothing of it";
}

TEST(LearnerPolicy, OpensGatesAndKeepsThoseOfOthers) {
  JobView view = TrainingView(0);
  view.learners = {Learner(0, Life::kGated)};
  view.learners[0].scheduling_gates.push_back("theirs");
  EXPECT_THAT(DecideGrants(view, PlanOf({}, {Name(0)})).actions,
              ElementsAre(Action(OpenGate{Name(0), "uid-0", "7", {"theirs"}})));
  view.learners = {Learner(0, Life::kRunning), Deleting(Learner(1, Life::kGated))};
  EXPECT_THAT(DecideGrants(view, PlanOf({}, {Name(0), Name(1), "unknown"})).actions, IsEmpty());
}

// A watch may be a minute behind, so the coordinator may know of learners earlier than the
// operator.
TEST(LearnerPolicy, TheServerIsAskedAboutPodsThatTheStoresMayNotKnow) {
  JobView view = TrainingView(1);
  Edit(view.job).status.objects.next_learner = 1000;
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
  const Termination early = TerminateLearners(view, /*completed=*/true, At(101));
  EXPECT_THAT(early.actions,
              ElementsAre(Action(DeletePod{Name(1), "uid-1", {}, "its job has ended"})));
  EXPECT_EQ(early.look_again, At(160));
  EXPECT_EQ(TerminateLearners(view, true, At(160)).actions.size(), 2u);
  EXPECT_EQ(TerminateLearners(view, /*completed=*/false, At(101)).actions.size(), 2u);
}

}  // namespace
}  // namespace pliant::controller
