#include "operator/controller/model/grant_refusals.h"

#include <span>
#include <vector>

#include <gtest/gtest.h>

#include "tests/unit/controller/job_fixture.h"

namespace pliant::controller {
namespace {

TEST(GrantRefusals, KeepsTheFirstTimeOfARefusalUntilAllIsDone) {
  const std::vector<Action> actions = {OpenGate{.pod = "a"}, OpenGate{.pod = "b"},
                                       CreateLearner{.number = 3}};
  GrantRefusals refusals;
  OnRefusal(std::span(actions).subspan(1), "quota", At(5), refusals);
  EXPECT_EQ(refusals.message, "quota");
  EXPECT_EQ(refusals.grants, (RefusedGrants{.since = At(5), .gates = {"b"}}));
  OnRefusal(std::span(actions).subspan(2), "another quota", At(9), refusals);
  EXPECT_EQ(refusals.message, "another quota");
  EXPECT_EQ(refusals.grants, (RefusedGrants{.since = At(5), .gates = {"b"}}));
  OnNoAnswer(NewJob().meta, std::span(actions).subspan(2), "webhook", At(12), refusals);
  EXPECT_EQ(refusals.message, "webhook");
  EXPECT_TRUE(refusals.unanswered);
  EXPECT_EQ(refusals.grants, (RefusedGrants{.since = At(5), .gates = {"b", Name(3)}}))
      << "including the pod that may exist";
  OnRefusal(std::span(actions).subspan(2), "quota", At(15), refusals);
  EXPECT_FALSE(refusals.unanswered);
  OnNoAnswer(NewJob().meta, std::span(actions).subspan(2), "webhook", At(18), refusals);
  OnAllDone(refusals);
  EXPECT_EQ(refusals, GrantRefusals{});
}

TEST(GrantRefusals, ARefusalThatNoLearnerWaitsForHoldsUpNoGrant) {
  const struct {
    const char* name;
    Action undone;
    bool holds_up;
  } kCases[] = {{"a pod", CreateLearner{}, true},
                {"the coordinator's pod", CreateCoordinator{}, true},
                {"its Service", CreateService{}, true},
                {"a deletion", DeletePod{}, false},
                {"the job's deletion", DeleteJob{}, false}};
  for (const auto& c : kCases) {
    GrantRefusals refusals;
    OnRefusal(std::span(&c.undone, 1), "no", At(5), refusals);
    EXPECT_EQ(refusals.grants.has_value(), c.holds_up) << c.name;
  }
}

// The time of the next grant starts afresh.
TEST(GrantRefusals, AWithdrawnGrantIsNoLongerRefused) {
  const std::vector<Action> actions = {CreateLearner{.number = 3}};
  const planner::DemandCap cap{.learners = 2};
  GrantRefusals refusals;
  OnRefusal(actions, "quota", At(5), refusals);
  OnCap(std::nullopt, refusals);
  EXPECT_TRUE(refusals.grants);
  OnCap(cap, refusals);
  EXPECT_FALSE(refusals.grants);
  OnRefusal(actions, "quota", At(9), refusals);
  OnCap(cap, refusals);
  EXPECT_EQ(refusals.grants->since, At(9)) << "withdrawn earlier";
  OnCap(std::nullopt, refusals);
  EXPECT_TRUE(refusals.grants);
}

}  // namespace
}  // namespace pliant::controller
