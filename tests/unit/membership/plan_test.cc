#include "trainer/membership/plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace pliant {
namespace {

using testing::HasSubstr;

TEST(Plan, IsReadAsTheContractShowsIt) {
  const Result<Plan> plan = DecodePlan(R"({"leaseTransitions": 3, "sequence": 17, "learners": [
      {"name": "digits-1a2b3-4", "podUid": "u4", "state": "Wanted"},
      {"name": "digits-1a2b3-2", "podUid": "u2", "state": "Leaving", "later": 1},
      {"name": "digits-1a2b3-0", "podUid": "u0", "state": "Ended"}]})");
  ASSERT_TRUE(plan) << plan.error();
  EXPECT_EQ(*plan, (Plan{.version = {3, 17},
                         .learners = {{"digits-1a2b3-4", "u4", WantedState::kWanted},
                                      {"digits-1a2b3-2", "u2", WantedState::kLeaving},
                                      {"digits-1a2b3-0", "u0", WantedState::kEnded}}}));
}

TEST(Plan, ItsReasonIsNotRequired) {
  const Result<Plan> plan = DecodePlan(
      R"({"leaseTransitions": 3, "sequence": 17, "learners": [], "reason": "fair share"})");
  ASSERT_TRUE(plan) << plan.error();
  EXPECT_EQ(plan->reason, "fair share");
}

TEST(Plan, AWrongOneIsRefusedWithItsFieldNamed) {
  const struct {
    const char* json;
    const char* want;
  } kCases[] = {
      {"{", "not JSON"},
      {R"({"sequence": 1, "learners": []})", "leaseTransitions is missing"},
      {R"({"leaseTransitions": 1, "sequence": 1})", "learners is missing"},
      {R"({"leaseTransitions": 1, "sequence": 1, "learners": {}})", "learners must be an array"},
      {R"({"leaseTransitions": 1, "sequence": 1, "learners": [], "reason": 5})",
       "reason must be a string"},
      {R"({"leaseTransitions": 1, "sequence": 1, "learners": [
          {"name": "", "podUid": "", "state": "Wanted"}]})",
       "learners[0].name must not be empty"},
      {R"({"leaseTransitions": 1, "sequence": 1, "learners": [
          {"name": "a", "podUid": "", "state": "wanted"}]})",
       "learners[0].state must be"},
      {R"({"leaseTransitions": 1, "sequence": 1, "learners": [
          {"name": "a", "podUid": "u", "state": "Wanted"},
          {"name": "a", "podUid": "u", "state": "Ended"}]})",
       "learners[1].name is listed twice"},
  };
  for (const auto& test : kCases) {
    const Result<Plan> plan = DecodePlan(test.json);
    ASSERT_FALSE(plan) << test.json;
    EXPECT_THAT(plan.error().message, HasSubstr(test.want)) << test.json;
  }
}

TEST(Plan, VersionsAreOrderedByLeaseFirst) {
  EXPECT_LT((PlanVersion{2, 90}), (PlanVersion{3, 1}));
  EXPECT_LT((PlanVersion{3, 1}), (PlanVersion{3, 2}));
}

TEST(JobProgress, LeavesOutWhatIsNotKnown) {
  EXPECT_EQ(Encode(JobProgress{.term = 2}),
            R"({"learners":[],"membership":null,"parametersSha256":"","planAccepted":null,)"
            R"("problem":{"message":"","reason":""},"resizes":[],"state":"Waiting","term":2})");
}

TEST(JobProgress, IsWrittenAsTheContractShowsIt) {
  const LearnerId learner{.name = "d-4", .pod_uid = "u4", .nonce = 9};
  const JobProgress progress{
      .term = 2,
      .membership = Membership{.id = {2, 5}, .members = {{learner, "10.0.0.4:1"}}},
      .state = JobState::kRunning,
      .plan_accepted = PlanVersion{3, 17},
      .tick = 412,
      .step = 400,
      .stats =
          Progress::Stats{
              .epoch = 16, .total_steps = 1200, .samples = 102400, .loss = 0.5, .batch_size = 256},
      .learners = {{.id = learner, .state = LearnerState::kMember, .step = 400}},
      .resizes = {{.membership = {2, 5},
                   .reason = "fair share",
                   .from = 2,
                   .to = 1,
                   .requested_unix_seconds = 10,
                   .running_unix_seconds = 11,
                   .longest_pause_seconds = 0.25,
                   .step = 396}},
      .speed = SteadySpeed{.samples_per_second = 80, .compute_seconds = 0.5, .seconds = 12}};
  EXPECT_EQ(
      Encode(progress),
      R"({"batchSize":256,"epoch":16,"learners":[{"name":"d-4","podUid":"u4","state":"Member","step":400}],)"
      R"("loss":0.5,"membership":{"id":"2.5","learners":["d-4"]},"parametersSha256":"",)"
      R"("planAccepted":{"leaseTransitions":3,"sequence":17},"problem":{"message":"","reason":""},)"
      R"("resizes":[{"from":2,"kind":"Planned","longestPauseSeconds":0.25,"membership":"2.5",)"
      R"("reason":"fair share","requestedUnixSeconds":10.0,"runningUnixSeconds":11.0,"step":396,"stepsLost":0,"to":1}],)"
      R"("samples":102400,)"
      R"("speed":{"computeSeconds":0.5,"samplesPerSecond":80.0,"seconds":12.0},)"
      R"("state":"Running","step":400,"term":2,"tick":412,"totalSteps":1200})");
}

}  // namespace
}  // namespace pliant
