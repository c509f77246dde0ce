#include "operator/controller/model/actions.h"

#include <gtest/gtest.h>

#include "tests/unit/controller/job_fixture.h"

namespace pliant::controller {
namespace {

using enum Effect::Kind;

TEST(Actions, EachActionHasItsEffectOnAnObject) {
  const api::ObjectMeta job = NewJob().meta;
  const struct {
    const char* name;
    Action action;
    std::optional<Effect> want;  // the pod is not compared
  } kCases[] = {
      {"checks change nothing", CheckTemplate{}, {}},
      {"questions change nothing", LookForPod{.pod = Name(1), .uid = ""}, {}},
      {"a coordinator", CreateCoordinator{3},
       Effect{.kind = kPodCreated, .name = CoordinatorPodName(job, 3)}},
      {"a learner", CreateLearner{.number = 2}, Effect{.kind = kPodCreated, .name = Name(2)}},
      {"a gate", OpenGate{.pod = Name(2), .resource_version = "7", .gates_left = {"a"}},
       Effect{.kind = kGateOpened, .name = Name(2), .replaced_version = "7", .gates_left = {"a"}}},
      {"a deletion", DeletePod{.pod = Name(2)}, Effect{.kind = kPodDeleted, .name = Name(2)}},
      {"the Service", DeleteService{.uid = "s"},
       Effect{.kind = kServiceDeleted, .name = CoordinatorName(job)}},
      // The garbage collector deletes everything else.
      {"the job", DeleteJob{}, {}},
  };
  for (const auto& c : kCases) {
    auto effect = EffectOf(c.action, job, At(5));
    if (effect) effect->pod = {};
    EXPECT_EQ(effect, c.want) << c.name;
  }
}

TEST(Actions, APodThatIsAboutToBeMadeIsTheJobsOwn) {
  const api::ObjectMeta job = NewJob().meta;
  const api::Pod learner =
      EffectOf(CreateLearner{.number = 2, .place = {"gpu-1"}}, job, At(5))->pod;
  EXPECT_TRUE(IsLearnerOf(learner, job));
  EXPECT_EQ(learner.planned_node, "gpu-1");
  EXPECT_TRUE(IsGated(learner));
  EXPECT_EQ(learner.meta.created, At(5));
  const api::Pod coordinator = EffectOf(CreateCoordinator{3}, job, At(5))->pod;
  EXPECT_TRUE(IsCoordinatorOf(coordinator, job));
  EXPECT_EQ(CoordinatorTerm(coordinator), 3);
}

// While its result is unknown, an action counts as done to the pod.
TEST(Actions, AnActionThatMustBeKnownHasAnEffectOnAPod) {
  const Action kAll[] = {CheckTemplate{},      FindMountCause{}, LookForPod{},   CreateSecrets{},
                         PutNetworkPolicies{}, CreateService{},  PointService{}, DeleteService{},
                         CreateCoordinator{},  CreateLearner{},  OpenGate{},     DeletePod{},
                         DeleteJob{}};
  static_assert(std::size(kAll) == std::variant_size_v<Action>);
  for (const Action& action : kAll) {
    if (!PropertiesOf(action).must_be_known) continue;
    const auto effect = EffectOf(action, NewJob().meta, At(5));
    ASSERT_TRUE(effect) << action.index();
    EXPECT_TRUE(effect->kind == kPodCreated || effect->kind == kGateOpened) << action.index();
  }
}

}  // namespace
}  // namespace pliant::controller
