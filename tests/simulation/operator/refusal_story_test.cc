// Requests that the API server refuses, and fields that it drops: the job's status reports it, and
// other jobs get its GPUs.
#include <chrono>
#include <optional>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "operator/controller/model/names.h"
#include "tests/simulation/operator/story_requests.h"
#include "tests/simulation/operator/story_world.h"

namespace pliant::operator_sim {
namespace {

using namespace std::chrono_literals;
using testing::Contains;
using testing::HasSubstr;
using testing::Not;

TEST_F(OperatorStory, ARefusedTemplateIsReportedWithoutAHotLoop) {
  world.refusal = "exceeded quota: gpus";
  world.Submit("one");
  ASSERT_TRUE(world.ReachEvent("one: TemplateRefused"));
  EXPECT_EQ(world.Status("one").value("reason", ""), "exceeded quota: gpus");
  const int before = world.Writes();
  world.loop.RunFor(60s);
  EXPECT_EQ(world.Writes(), before);
  world.refusal.clear();
  ASSERT_TRUE(world.ReachSizes({{"one", 8}}));
}

TEST_F(OperatorStory, JobsOfOneTemplateAreCheckedOnceAMinute) {
  world.Submit("one");
  ASSERT_TRUE(world.ReachSizes({{"one", 8}}));
  world.Submit("two");
  world.Submit("three");
  ASSERT_TRUE(
      world.Reach([&] { return world.Learners("two") > 0 && world.Learners("three") > 0; }));
  EXPECT_EQ(world.dry_runs(), 1);

  world.Submit("other", {{"template", {{"metadata", {{"labels", {{"team", "other"}}}}}}}});
  ASSERT_TRUE(world.Reach([&] { return world.Learners("other") > 0; }));
  EXPECT_EQ(world.dry_runs(), 2) << "another template is checked";

  world.loop.RunFor(61s);
  world.Submit("late");
  ASSERT_TRUE(world.Reach([&] { return world.Learners("late") > 0; }));
  EXPECT_EQ(world.dry_runs(), 3) << "the server's rules may have changed";
}

// The template was valid a moment ago, and is refused when its pods are created.
TEST_F(OperatorStory, ARefusalAfterAValidCheckIsReported) {
  world.Submit("one");
  ASSERT_TRUE(world.ReachSizes({{"one", 8}}));
  world.refusal = "exceeded quota: gpus";
  world.Submit("two");
  ASSERT_TRUE(world.ReachEvent("two: RefusedByServer"));
  world.refusal.clear();
  ASSERT_TRUE(world.ReachSizes({{"one", 4}, {"two", 4}}));
}

// An error in the operator's own credentials is not a verdict on a job.
TEST_F(OperatorStory, AnUnauthenticatedOperatorIsNoRefusalOfTheJob) {
  const auto not_known = AnswerWith(401, [](const kube::HttpRequest& request) {
    return request.target.find("/team-a/pods") != std::string::npos;
  });
  world.interfere = not_known;
  world.Submit("one");
  world.loop.RunFor(60s);
  EXPECT_THAT(world.events, Not(Contains(HasSubstr("one:"))));
  world.interfere = nullptr;
  ASSERT_TRUE(world.ReachSizes({{"one", 8}}));

  world.interfere = not_known;
  world.CrashALearner("one");
  world.loop.RunFor(60s);
  EXPECT_THAT(world.events, Not(Contains("one: RefusedByServer")));
  world.interfere = nullptr;
  ASSERT_TRUE(world.ReachSizes({{"one", 8}}));
}

TEST_F(OperatorStory, AServerThatRefusesPodsIsAskedLessAndLess) {
  world.Submit("one", {{"elastic", {{"maxLearners", 4}}}});
  ASSERT_TRUE(world.ReachSizes({{"one", 4}}));
  world.refusal = "exceeded quota: pods";
  world.CrashALearner("one");
  ASSERT_TRUE(world.ReachEvent("one: RefusedByServer"));
  const int before = world.Writes();
  world.loop.RunFor(60s);
  EXPECT_LE(world.Writes() - before, 15);
  world.refusal.clear();
  ASSERT_TRUE(world.ReachSizes({{"one", 4}}));
}

// Something other than a readable ResourceQuota limits this one job to two learners.
TEST_F(OperatorStory, GpusThatAQuotaRefusesToOneJobGoToAnother) {
  world.server.refuse = [&](const std::string&, const Json& object) {
    const bool limited = IsLearner(object) && LabelOf(object, controller::kLabelJob) == "limited";
    return limited && world.CountPods("limited", "learner") >= 2 ? "exceeded quota: gpus" : "";
  };
  world.Submit("limited", {{"startTimeoutSeconds", 30}});
  world.Submit("other");
  ASSERT_TRUE(world.ReachEvent("limited: RefusedByServer"));
  EXPECT_EQ(world.CountPods("other", "learner"), 4);
  world.loop.RunFor(60s);
  EXPECT_EQ(world.Learners("limited"), 2);
  EXPECT_EQ(world.Learners("other"), 6);
  EXPECT_THAT(world.Status("limited").value("reason", ""), HasSubstr("did not start in time"));
  world.server.refuse = nullptr;
  ASSERT_TRUE(world.ReachSizes({{"limited", 4}, {"other", 4}}));
}

TEST_F(OperatorStory, GpusOfLearnersWhoseGatesAreRefusedGoToAnother) {
  world.interfere = AnswerWith(403, [](const kube::HttpRequest& request) {
    return request.method == kube::HttpMethod::kPatch &&
           request.target.find("/pods/denied-") != std::string::npos;
  });
  world.Submit("denied", {{"startTimeoutSeconds", 30}});
  world.Submit("other");
  ASSERT_TRUE(world.ReachEvent("denied: RefusedByServer"));
  EXPECT_EQ(world.CountPods("denied", "learner"), 4);
  world.loop.RunFor(60s);
  EXPECT_EQ(world.CountPods("denied", "learner"), 0);
  EXPECT_EQ(world.Learners("other"), 8);
  EXPECT_EQ(world.Phase("denied"), "Queued");
  world.interfere = nullptr;
  ASSERT_TRUE(world.ReachSizes({{"denied", 4}, {"other", 4}}));
}

TEST_F(OperatorStory, AProgramsRequestIsInStatusUntilItWantsAllLearnersAgain) {
  const auto ask_for = [&](std::optional<int> learners) {
    world.trainings.Define("one", {.steps = kLong.steps, .learners_asked = learners});
  };
  world.Submit("one", {{"elastic", {{"maxLearners", 4}}}});
  ASSERT_TRUE(world.ReachSizes({{"one", 4}}));
  ask_for(3);
  ASSERT_TRUE(world.ReachSizes({{"one", 3}}));
  EXPECT_EQ(world.Status("one").value("learnersAsked", 0), 3);
  ask_for({});
  ASSERT_TRUE(world.ReachSizes({{"one", 4}}));
  EXPECT_FALSE(world.Status("one").contains("learnersAsked"));
}

}  // namespace
}  // namespace pliant::operator_sim
