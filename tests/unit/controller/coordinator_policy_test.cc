#include "operator/controller/lifecycle/coordinator_policy.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/controller/job_fixture.h"

namespace pliant::controller {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::VariantWith;

TEST(CoordinatorPolicy, MakesAllThatAFirstCoordinatorNeeds) {
  JobView view{.job = Shared(AdmittedJob(2))};
  Edit(view.job).status.objects.coordinator_term = 0;
  const CoordinatorOutcome outcome = DecideCoordinator(view, true, At(10));
  EXPECT_EQ(outcome.term, 1);
  EXPECT_THAT(outcome.actions,
              ElementsAre(Action(CreateService{1}), Action(CreateSecrets{1, ""}),
                          Action(PutNetworkPolicies{}), Action(CreateCoordinator{1})));
}

TEST(CoordinatorPolicy, LeavesAGoodOneAlone) {
  const JobView view = TrainingView(2);
  const CoordinatorOutcome outcome = DecideCoordinator(view, true, At(10));
  EXPECT_EQ(outcome.term, 1);
  EXPECT_THAT(outcome.actions, IsEmpty());
}

TEST(CoordinatorPolicy, ReplacesOneThatIsGoneByAHigherTerm) {
  for (const bool deleting : {false, true}) {
    JobView view = TrainingView(2);
    view.coordinators.clear();
    if (deleting) view.coordinators = {Deleting(Coordinator(1))};
    const CoordinatorOutcome outcome = DecideCoordinator(view, true, At(10));
    EXPECT_EQ(outcome.term, 2);
    EXPECT_THAT(
        outcome.actions,
        ElementsAre(Action(PointService{.term = 2, .resource_version = "9"}),
                    Action(CreateSecrets{2, "service-uid"}),
                    Action(PutNetworkPolicies{"service-uid"}), Action(CreateCoordinator{2})));
    EXPECT_EQ(outcome.retry.tries, 1);
    // The next try waits for its back-off.
    Edit(view.job).status.objects.coordinator_term = 2;
    view.coordinators.clear();
    view.soft_state.coordinator_retry = outcome.retry;
    const CoordinatorOutcome next = DecideCoordinator(view, true, At(11));
    EXPECT_THAT(next.actions, IsEmpty());
    EXPECT_EQ(next.look_again, outcome.retry.not_before);
  }
}

TEST(CoordinatorPolicy, ATermInStatusWithoutAPodIsNeverUsedAgain) {
  JobView view = TrainingView(2);
  Edit(view.job).status.objects.coordinator_term = 5;  // written before the operator was killed
  const CoordinatorOutcome outcome = DecideCoordinator(view, true, At(10));
  EXPECT_EQ(outcome.term, 6);
  EXPECT_THAT(outcome.actions, testing::Contains(Action(CreateCoordinator{6})));
}

TEST(CoordinatorPolicy, ReplacesACoordinatorThatRunsAndDoesNotAnswer) {
  JobView view = TrainingView(2);
  view.coordinator.reachable = false;
  view.coordinator.silent_since = At(100);
  const CoordinatorOutcome patient = DecideCoordinator(view, true, At(110));
  EXPECT_THAT(patient.actions, IsEmpty());
  ASSERT_TRUE(patient.look_again);
  const CoordinatorOutcome outcome = DecideCoordinator(view, true, *patient.look_again);
  EXPECT_EQ(outcome.term, 2);
  EXPECT_THAT(outcome.actions, testing::Contains(VariantWith<DeletePod>(
                                   testing::Field(&DeletePod::pod, "digits-1a2b3-coordinator-1"))));
}

TEST(CoordinatorPolicy, OneThatCannotStartIsNotReplaced) {
  JobView view = TrainingView(2);
  view.coordinators = {Coordinator(1, /*running=*/false)};
  view.coordinator = {};
  EXPECT_THAT(DecideCoordinator(view, true, At(9999)).actions, IsEmpty());
}

TEST(CoordinatorPolicy, EndsThoseOfOlderTerms) {
  JobView view = TrainingView(2);
  Edit(view.job).status.objects.coordinator_term = 2;
  view.coordinators = {Coordinator(1), Coordinator(2)};
  view.service = Shared(ServiceFor(2));
  EXPECT_THAT(
      DecideCoordinator(view, true, At(10)).actions,
      ElementsAre(VariantWith<DeletePod>(testing::Field(&DeletePod::uid, "coordinator-uid-1"))));
}

TEST(CoordinatorPolicy, EndsAllWhenNoneIsNeeded) {
  EXPECT_EQ(DecideCoordinator(TrainingView(0), false, At(10)).actions.size(), 1u);
}

// It has a plan of a leader that never was, or was before a backup.
TEST(CoordinatorPolicy, OneThatRefusesOurPlansIsReplacedAfterTenSeconds) {
  JobView view = TrainingView(2);
  view.coordinator.refused_since = At(10);
  CoordinatorOutcome outcome = DecideCoordinator(view, true, At(19));
  EXPECT_THAT(outcome.actions, IsEmpty());
  EXPECT_EQ(outcome.look_again, At(20));
  outcome = DecideCoordinator(view, true, At(20));
  EXPECT_EQ(outcome.term, 2);
  EXPECT_THAT(outcome.actions, testing::Contains(Action(CreateCoordinator{2})));
}

// Its owner may have it refuse for ever.
TEST(CoordinatorPolicy, ReplacementsOfThoseThatRefuseBackOff) {
  JobView view = TrainingView(2);
  view.coordinator.refused_since = At(0);
  double now = 0;
  int replaced = 0;
  for (; now < 3600; ++now) {
    Edit(view.coordinator.progress).plan_accepted.reset();
    const CoordinatorOutcome outcome = DecideCoordinator(view, true, At(now));
    view.soft_state.coordinator_retry = outcome.retry;
    if (outcome.term == view.job->status.objects.coordinator_term) continue;
    ++replaced;
    Edit(view.job).status.objects.coordinator_term = outcome.term;
    view.coordinators = {Coordinator(outcome.term)};
    view.coordinator.refused_since = At(now + 1);
  }
  EXPECT_GT(replaced, 20);
  EXPECT_LT(replaced, 6 + 30) << "at most one in two minutes after the sixth";
}

}  // namespace
}  // namespace pliant::controller
