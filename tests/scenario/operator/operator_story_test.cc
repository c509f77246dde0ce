#include <algorithm>
#include <string>
#include <string_view>
#include <utility>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "operator/controller/names.h"
#include "tests/scenario/operator/operator_world.h"

namespace pliant {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::Contains;
using testing::HasSubstr;
using testing::Not;

// Not only to have it checked.
bool MakesLearner(const kube::HttpRequest& request) {
  return request.method == kube::HttpMethod::kPost &&
         request.target.find("dryRun=All") == std::string::npos &&
         request.body.find(R"("kind":"Pod")") != std::string::npos &&
         request.body.find(R"("pliant.dev/learner":)") != std::string::npos;
}

bool OpensGate(const kube::HttpRequest& request) {
  return request.method == kube::HttpMethod::kPatch &&
         request.body.find(R"("schedulingGates")") != std::string::npos;
}

class OperatorStory : public testing::Test {
 protected:
  OperatorStory() { world.StartOperator(); }

  OperatorWorld world{{{"gpu-1", 4}, {"gpu-2", 4}}};
};

// The main story: alone 8; a second, equal one: 4 and 4; its priority doubled: 3 and 5; the first
// completes: 8.
TEST_F(OperatorStory, TwoTrainingsShareTheCluster) {
  world.SubmitJob("one");
  ASSERT_TRUE(world.ReachSizes({{"one", 8}}));
  world.SubmitJob("two");
  ASSERT_TRUE(world.ReachSizes({{"one", 4}, {"two", 4}}));
  world.EditJob("two", {{"priority", 10000}});
  ASSERT_TRUE(world.ReachSizes({{"one", 3}, {"two", 5}}));
  world.Complete("one");
  ASSERT_TRUE(world.ReachSizes({{"two", 8}}));
  EXPECT_EQ(world.Phase("one"), "Succeeded");
  EXPECT_EQ(world.Status("one").value("parametersSha256", ""), "abc");
  world.Complete("two");
  ASSERT_TRUE(world.Reach([&] {
    return world.Phase("two") == "Succeeded" && world.PodsOf("two", "coordinator") == 0;
  }));
  EXPECT_EQ(world.PodsOf("one", "coordinator"), 0);
  EXPECT_EQ(world.PodsOf("one", "learner") + world.PodsOf("two", "learner"), 0);
  EXPECT_EQ(world.Status("one").value("restarts", -1), 0) << "nobody failed";
  EXPECT_THAT(world.events, Contains("one: Completed"));
}

TEST_F(OperatorStory, AJobIsSeenInMetricsUntilItHasEnded) {
  const auto job = [](const std::string& metric, const std::string& name) {
    return metric + "{job_name=\"" + name + "\",job_namespace=\"team-a\"} ";
  };
  world.SubmitJob("one");
  world.SubmitJob("two");
  ASSERT_TRUE(world.ReachSizes({{"one", 4}, {"two", 4}}));
  std::string text = world.Metrics();
  EXPECT_THAT(text, HasSubstr(job("pliant_job_entitlement_gpus", "one") + "4\n"));
  EXPECT_THAT(text, HasSubstr(job("pliant_job_allocated_gpus", "two") + "4\n"));
  EXPECT_THAT(text, HasSubstr(job("pliant_job_demand_gpus", "two") + "8\n"));
  EXPECT_THAT(text, HasSubstr("pliant_capacity_gpus 8\n"));
  EXPECT_THAT(text, HasSubstr("pliant_job_wait_seconds_count 2\n"));
  EXPECT_THAT(text, HasSubstr("pliant_coordinator_requests_total{result=\"OK\"}"));
  EXPECT_THAT(text, Not(HasSubstr("waiting_since")));

  world.EditJob("two", {{"suspend", true}});
  world.Complete("one");
  ASSERT_TRUE(world.Reach(
      [&] { return world.Phase("one") == "Succeeded" && world.Phase("two") == "Suspended"; }));
  text = world.Metrics();
  EXPECT_THAT(text, Not(HasSubstr("\"one\"")));
  EXPECT_THAT(text, HasSubstr(job("pliant_job_allocated_gpus", "two") + "0\n"));
  EXPECT_THAT(text, HasSubstr("pliant_jobs{phase=\"Succeeded\"} 1\n"));
}

// The same, with the operator killed after each change, at ever other moments.
TEST_F(OperatorStory, AnOperatorThatIsKilledAtAnyMomentChangesNothing) {
  for (int delay = 0; delay <= 1000; delay += 125) {
    SCOPED_TRACE(delay);
    OperatorWorld again({{"gpu-1", 4}, {"gpu-2", 4}});
    again.StartOperator();
    const auto kill = [&] {
      again.loop.RunFor(milliseconds(delay));
      again.KillOperator();
      again.loop.RunFor(seconds(1));
      again.StartOperator();
    };
    again.SubmitJob("one");
    kill();
    ASSERT_TRUE(again.ReachSizes({{"one", 8}}));
    again.SubmitJob("two");
    kill();
    ASSERT_TRUE(again.ReachSizes({{"one", 4}, {"two", 4}}));
    again.EditJob("two", {{"priority", 10000}});
    kill();
    ASSERT_TRUE(again.ReachSizes({{"one", 3}, {"two", 5}}));
    again.Complete("one");
    kill();
    ASSERT_TRUE(again.ReachSizes({{"two", 8}}));
    EXPECT_EQ(again.Phase("one"), "Succeeded");
    EXPECT_EQ(again.terms_seen, 1) << "no coordinator was replaced";
  }
}

TEST_F(OperatorStory, NothingIsWrittenWhileNothingChanges) {
  world.SubmitJob("one", {{"elastic", {{"maxLearners", 2}}}});
  ASSERT_TRUE(world.ReachSizes({{"one", 2}}));
  world.loop.RunFor(seconds(5));
  const int before = world.server.writes;
  world.loop.RunFor(seconds(100));
  EXPECT_LE(world.server.writes - before, 4) << "progress, at most every 30 s";
  EXPECT_GE(world.server.writes - before, 2);
}

TEST_F(OperatorStory, ACrashedLearnerIsReplaced) {
  world.SubmitJob("one");
  ASSERT_TRUE(world.ReachSizes({{"one", 8}}));
  world.CrashALearner("one");
  ASSERT_TRUE(world.Reach([&] { return world.Learners("one") == 7; }));
  ASSERT_TRUE(world.ReachSizes({{"one", 8}}));
  EXPECT_EQ(world.Status("one").value("restarts", 0), 1);
  EXPECT_THAT(world.events, Contains("one: LearnerFailed"));
}

TEST_F(OperatorStory, SuspendGivesEverythingBackAndResumeGoesOn) {
  world.SubmitJob("one");
  ASSERT_TRUE(world.ReachSizes({{"one", 8}}));
  world.EditJob("one", {{"suspend", true}});
  ASSERT_TRUE(world.Reach([&] { return world.Phase("one") == "Suspended"; }));
  EXPECT_EQ(world.PodsOf("one", "learner"), 0);
  ASSERT_TRUE(world.Reach([&] { return world.PodsOf("one", "coordinator") == 0; }));
  EXPECT_EQ(world.Status("one").value("restarts", -1), 0);
  world.EditJob("one", {{"suspend", false}});
  ASSERT_TRUE(world.ReachSizes({{"one", 8}}));
}

// Its shards were frozen for 8 when it was admitted first.
TEST_F(OperatorStory, AJobThatWasScaledBeyondItsShardsIsSuspendedAndResumed) {
  world.SubmitJob("one", {{"training", {{"logicalShards", 8}}}});
  ASSERT_TRUE(world.ReachSizes({{"one", 8}}));
  world.EditJob("one", {{"elastic", {{"maxLearners", 16}}}, {"suspend", true}});
  ASSERT_TRUE(world.Reach([&] { return world.Phase("one") == "Suspended"; }));
  world.EditJob("one", {{"suspend", false}});
  ASSERT_TRUE(world.ReachSizes({{"one", 8}}));
}

TEST_F(OperatorStory, LosingAllLearnersAtOnceIsRecoveredFrom) {
  world.SubmitJob("one");
  ASSERT_TRUE(world.ReachSizes({{"one", 8}}));
  world.RemovePods("one", "learner");
  ASSERT_TRUE(world.Reach([&] { return world.Phase("one") == "Recovering"; }));
  ASSERT_TRUE(world.ReachSizes({{"one", 8}}));
  EXPECT_EQ(world.Status("one").value("restarts", -1), 0) << "a deletion is nobody's failure";
}

TEST_F(OperatorStory, ALostCoordinatorIsReplacedWhileTrainingGoesOn) {
  world.SubmitJob("one");
  ASSERT_TRUE(world.ReachSizes({{"one", 8}}));
  world.RemovePods("one", "coordinator");
  ASSERT_TRUE(world.Reach([&] { return world.terms_seen == 2; }));
  EXPECT_EQ(world.PodsOf("one", "learner"), 8);
  world.SubmitJob("two");
  ASSERT_TRUE(world.ReachSizes({{"one", 4}, {"two", 4}}));
  EXPECT_EQ(world.Status("one").value("restarts", -1), 0);
  EXPECT_THAT(world.events, Contains("one: CoordinatorReplaced"));
}

TEST_F(OperatorStory, AnUpgradeReplacesCoordinatorsThatCannotProveTheirJob) {
  world.SubmitJob("one");
  ASSERT_TRUE(world.ReachSizes({{"one", 8}}));
  world.KillOperator();
  world.MakeOlder("one");
  world.StartOperator();
  ASSERT_TRUE(world.Reach([&] { return world.terms_seen == 2; }));
  world.SubmitJob("two");
  ASSERT_TRUE(world.ReachSizes({{"one", 4}, {"two", 4}})) << "the new coordinator is told";
  EXPECT_EQ(world.terms_seen, 2) << "one replacement is enough";
  EXPECT_THAT(world.events, Contains("one: CoordinatorOutdated"));
  EXPECT_THAT(world.events, Contains("one: CoordinatorReplaced"));
  EXPECT_EQ(world.PodsOf("one", "coordinator"), 1);
  EXPECT_EQ(world.Status("one").value("restarts", -1), 0);
  EXPECT_EQ(world.NamesOfCoordinator("one").size(), 2U) << "its learners know the old name only";
  EXPECT_EQ(world.NamesOfCoordinator("two").size(), 1U);
}

TEST_F(OperatorStory, AProgramThatAlwaysFailsFailsItsJobAndHarmsNoOther) {
  world.SubmitJob("good", {{"elastic", {{"maxLearners", 4}}}});
  ASSERT_TRUE(world.ReachSizes({{"good", 4}}));
  world.LetProgramsFail("bad", 1);
  world.SubmitJob("bad", {{"failurePolicy", {{"maxFailures", 4}}}});
  ASSERT_TRUE(world.Reach([&] { return world.Phase("bad") == "Failed"; }));
  world.loop.RunFor(seconds(10));
  EXPECT_THAT(world.events, Contains("bad: TooManyFailures"));
  EXPECT_EQ(world.PodsOf("bad", "learner") + world.PodsOf("bad", "coordinator"), 0);
  EXPECT_EQ(world.Learners("good"), 4);
}

TEST_F(OperatorStory, AWrongProgramFailsAtOnce) {
  world.LetProgramsFail("bad", 2);
  world.SubmitJob("bad");
  ASSERT_TRUE(world.Reach([&] { return world.Phase("bad") == "Failed"; }));
  world.loop.RunFor(seconds(1));
  EXPECT_THAT(world.events, Contains("bad: PermanentExitCode"));
}

TEST_F(OperatorStory, AFinishedJobGoesWhenItsTimeIsUp) {
  world.SubmitJob("one", {{"ttlSecondsAfterFinished", 30}});
  world.SubmitJob("two");
  ASSERT_TRUE(world.ReachSizes({{"one", 4}, {"two", 4}}));
  world.Complete("one");
  ASSERT_TRUE(world.Reach([&] { return world.Phase("one") == "Succeeded"; }));
  world.loop.RunFor(seconds(25));
  EXPECT_EQ(world.Phase("one"), "Succeeded");
  world.loop.RunFor(seconds(10));
  EXPECT_EQ(world.Phase("one"), "") << "it is gone";
  ASSERT_TRUE(world.ReachSizes({{"two", 8}}));
}

TEST_F(OperatorStory, ADeadlineEndsATrainingAndFreesItsGpus) {
  world.SubmitJob("one", {{"activeDeadlineSeconds", 60}});
  world.SubmitJob("two");
  ASSERT_TRUE(world.ReachSizes({{"one", 4}, {"two", 4}}));
  ASSERT_TRUE(world.Reach([&] { return world.Phase("one") == "Failed"; }));
  ASSERT_TRUE(world.ReachSizes({{"two", 8}}));
  EXPECT_THAT(world.events, Contains("one: DeadlineExceeded"));
}

TEST_F(OperatorStory, AMissingImageIsToldAndItsGrantIsWithdrawn) {
  world.SetImageMissing("bad");
  world.SubmitJob("bad");
  ASSERT_TRUE(
      world.Reach([&] { return std::ranges::contains(world.events, "bad: ImagePullFailed"); }));
  // After the start timeout the GPUs go to somebody who can use them.
  world.SubmitJob("good", {{"elastic", {{"minLearners", 8}}}});
  ASSERT_TRUE(world.ReachSizes({{"good", 8}}));
}

TEST_F(OperatorStory, ARefusedTemplateIsToldWithoutAHotLoop) {
  world.server.refuse = [](const nlohmann::json&) { return std::string("exceeded quota: gpus"); };
  world.SubmitJob("one");
  ASSERT_TRUE(
      world.Reach([&] { return std::ranges::contains(world.events, "one: TemplateRefused"); }));
  EXPECT_EQ(world.Status("one").value("reason", ""), "exceeded quota: gpus");
  const int before = world.server.writes;
  world.loop.RunFor(seconds(60));
  EXPECT_EQ(world.server.writes, before);
  world.server.refuse = nullptr;
  ASSERT_TRUE(world.ReachSizes({{"one", 8}}));
}

// A webhook that is down says nothing of the template.
TEST_F(OperatorStory, ATemplateThatCannotBeCheckedIsToldAndTriedAgain) {
  for (const auto& [job, answer] : {std::pair{"one", 500}, {"late", 504}}) {
    world.server.fail = [answer](const kube::HttpRequest& request) {
      return request.target.find("dryRun=All") == std::string::npos ? 0 : answer;
    };
    world.SubmitJob(job, {{"template", {{"metadata", {{"labels", {{"team", job}}}}}}}});
    const std::string event = std::string(job) + ": TemplateUnchecked";
    ASSERT_TRUE(world.Reach([&] { return std::ranges::contains(world.events, event); }));
    EXPECT_EQ(world.Phase(job), "Queued");
    EXPECT_THAT(world.Status(job).value("reason", ""), HasSubstr("failed calling webhook"));
    const int before = world.server.writes;
    world.loop.RunFor(seconds(60));
    EXPECT_EQ(world.server.writes, before) << "it is told once";
    world.server.fail = nullptr;
    ASSERT_TRUE(world.ReachSizes({{job, 8}}));
    world.RemoveJob(job);
  }
}

// The API server waits 10 s for a webhook, unless that says otherwise.
TEST_F(OperatorStory, WhatMakesPodsMayTakeLongAndHoldsUpNothingElse) {
  int pods = 0;
  world.server.fail = [&](const kube::HttpRequest& request) {
    if (request.method == kube::HttpMethod::kGet) return 0;
    const bool makes_pod = request.method == kube::HttpMethod::kPost &&
                           request.target.find("/pods?") != std::string::npos;
    if (makes_pod) ++pods;
    EXPECT_EQ(request.deadline > seconds(10), makes_pod) << request.target;
    return 0;
  };
  world.SubmitJob("one");
  ASSERT_TRUE(world.ReachSizes({{"one", 8}}));
  EXPECT_GE(pods, 10) << "a check, a coordinator, and the learners";

  world.LetWebhooksHang(true);
  world.SubmitJob("two", {{"template", {{"metadata", {{"labels", {{"team", "two"}}}}}}}});
  world.EditJob("one", {{"elastic", {{"maxLearners", 3}}}});
  ASSERT_TRUE(world.ReachSizes({{"one", 3}}));
  EXPECT_EQ(world.Phase("two"), "");
  world.LetWebhooksHang(false);
  ASSERT_TRUE(world.ReachSizes({{"one", 3}, {"two", 5}}));
}

TEST_F(OperatorStory, JobsOfOneTemplateAreCheckedOnceAMinute) {
  int checks = 0;
  world.server.fail = [&checks](const kube::HttpRequest& request) {
    if (request.target.find("dryRun=All") != std::string::npos) ++checks;
    return 0;
  };
  world.SubmitJob("one");
  ASSERT_TRUE(world.ReachSizes({{"one", 8}}));
  world.SubmitJob("two");
  world.SubmitJob("three");
  ASSERT_TRUE(
      world.Reach([&] { return world.Learners("two") > 0 && world.Learners("three") > 0; }));
  EXPECT_EQ(checks, 1);

  world.SubmitJob("other", {{"template", {{"metadata", {{"labels", {{"team", "other"}}}}}}}});
  ASSERT_TRUE(world.Reach([&] { return world.Learners("other") > 0; }));
  EXPECT_EQ(checks, 2) << "another template is asked about";

  world.loop.RunFor(seconds(61));
  world.SubmitJob("late");
  ASSERT_TRUE(world.Reach([&] { return world.Learners("late") > 0; }));
  EXPECT_EQ(checks, 3) << "what the server goes by may have changed";
}

// It was right a moment ago, and is refused when its pods are made.
TEST_F(OperatorStory, WhatIsNotAskedAboutIsToldWhenItIsRefused) {
  world.SubmitJob("one");
  ASSERT_TRUE(world.ReachSizes({{"one", 8}}));
  world.server.refuse = [](const nlohmann::json&) { return std::string("exceeded quota: gpus"); };
  world.SubmitJob("two");
  ASSERT_TRUE(
      world.Reach([&] { return std::ranges::contains(world.events, "two: RefusedByServer"); }));
  world.server.refuse = nullptr;
  ASSERT_TRUE(world.ReachSizes({{"one", 4}, {"two", 4}}));
}

// A pod that is really to be made is told of as its check is.
TEST_F(OperatorStory, APodThatTheServerDoesNotAnswerForIsToldAndAskedForLessAndLess) {
  for (const auto& [job, answer] : {std::pair{"one", 500}, {"late", 504}}) {
    int tries = 0;
    world.server.fail = [&tries, answer](const kube::HttpRequest& request) {
      const bool learner = MakesLearner(request);
      tries += learner ? 1 : 0;
      return learner ? answer : 0;
    };
    world.SubmitJob(job);
    const std::string event = std::string(job) + ": UnansweredByServer";
    ASSERT_TRUE(world.Reach([&] { return std::ranges::contains(world.events, event); }));
    EXPECT_THAT(world.Status(job).at("conditions").dump(), HasSubstr("failed calling webhook"));
    const int before = tries;
    world.loop.RunFor(seconds(60));
    EXPECT_LE(tries - before, 8);
    world.server.fail = nullptr;
    ASSERT_TRUE(world.ReachSizes({{job, 8}}));
    world.RemoveJob(job);
  }
}

TEST_F(OperatorStory, GpusOfPodsThatTheServerDoesNotAnswerForGoToAnother) {
  world.server.fail = [](const kube::HttpRequest& request) {
    const bool stuck = request.body.find(R"("pliant.dev/job":"stuck")") != std::string::npos;
    return MakesLearner(request) && stuck ? 504 : 0;
  };
  world.SubmitJob("stuck", {{"startTimeoutSeconds", 30}});
  ASSERT_TRUE(world.Reach(
      [&] { return std::ranges::contains(world.events, "stuck: UnansweredByServer"); }));
  world.SubmitJob("other", {{"elastic", {{"minLearners", 8}}}});
  ASSERT_TRUE(world.ReachSizes({{"other", 8}}));
}

// The webhook is asked of each change of a pod: the pods are made, but none may be scheduled.
TEST_F(OperatorStory, AGateThatTheServerDoesNotAnswerForIsToldAndAskedForLessAndLess) {
  for (const auto& [job, answer] : {std::pair{"one", 500}, {"late", 504}}) {
    int tries = 0;
    world.server.fail = [&tries, answer](const kube::HttpRequest& request) {
      const bool gate = OpensGate(request);
      tries += gate ? 1 : 0;
      return gate ? answer : 0;
    };
    world.SubmitJob(job);
    const std::string event = std::string(job) + ": UnansweredByServer";
    ASSERT_TRUE(world.Reach([&] { return std::ranges::contains(world.events, event); }));
    EXPECT_THAT(world.Status(job).at("conditions").dump(), HasSubstr("failed calling webhook"));
    const int before = tries;
    world.loop.RunFor(seconds(60));
    EXPECT_LE(tries - before, 16) << "each twice";
    world.server.fail = nullptr;
    ASSERT_TRUE(world.ReachSizes({{job, 8}}));
    world.RemoveJob(job);
  }
}

TEST_F(OperatorStory, GpusBehindGatesThatTheServerDoesNotAnswerForGoToAnother) {
  world.SubmitJob("stuck", {{"startTimeoutSeconds", 30}});
  ASSERT_TRUE(world.Reach([&] { return world.PodsOf("stuck", "coordinator") > 0; }));
  world.server.fail = [](const kube::HttpRequest& request) {
    const bool stuck = request.target.find("/pods/stuck-") != std::string::npos;
    return OpensGate(request) && stuck ? 504 : 0;
  };
  ASSERT_TRUE(world.Reach(
      [&] { return std::ranges::contains(world.events, "stuck: UnansweredByServer"); }));
  world.SubmitJob("other", {{"elastic", {{"minLearners", 8}}}});
  ASSERT_TRUE(world.ReachSizes({{"other", 8}}));
}

// The server answers late, and each time, but it has opened the gate: nobody is told for long.
TEST_F(OperatorStory, AGateThatWasOpenedAfterAllIsNoTrouble) {
  int late = 0;
  world.server.lose = [&](const kube::HttpRequest& request) {
    return OpensGate(request) && late++ < 16;
  };
  world.SubmitJob("one");
  ASSERT_TRUE(world.ReachSizes({{"one", 8}}));
  EXPECT_GT(late, 0);
}

// The server answers late, but it has made the pod: nobody is told.
TEST_F(OperatorStory, APodThatWasMadeAfterAllIsNoTrouble) {
  bool late = false;
  world.server.lose = [&](const kube::HttpRequest& request) {
    return MakesLearner(request) && !std::exchange(late, true);
  };
  world.SubmitJob("one");
  ASSERT_TRUE(world.ReachSizes({{"one", 8}}));
  EXPECT_TRUE(late);
  EXPECT_THAT(world.events, Not(Contains("one: UnansweredByServer")));
}

// An operator whose own credentials ran out has nothing to say of a job.
TEST_F(OperatorStory, ThatTheOperatorIsNotKnownIsNoRefusalOfTheJob) {
  world.server.fail = [](const kube::HttpRequest& request) {
    return request.target.find("/pods") == std::string::npos ? 0 : 401;
  };
  world.SubmitJob("one");
  world.loop.RunFor(seconds(60));
  EXPECT_THAT(world.events, Not(Contains(HasSubstr("one:"))));
  world.server.fail = nullptr;
  ASSERT_TRUE(world.ReachSizes({{"one", 8}}));

  world.server.fail = [](const kube::HttpRequest& request) {
    return request.target.find("/pods") == std::string::npos ? 0 : 401;
  };
  world.CrashALearner("one");
  world.loop.RunFor(seconds(60));
  EXPECT_THAT(world.events, Not(Contains("one: RefusedByServer")));
  world.server.fail = nullptr;
  ASSERT_TRUE(world.ReachSizes({{"one", 8}}));
}

// Deleted and made again while a batch of the old one waits for the server, which then does not say
// whether it made the pod.
TEST_F(OperatorStory, AJobIsMadeAgainUnderItsNameWhileItIsActedOn) {
  bool again = false;
  world.server.fail = [&](const kube::HttpRequest& request) {
    if (!MakesLearner(request) || again) return 0;
    again = true;
    world.RemoveJob("one");
    world.SubmitJob("one", {{"elastic", {{"maxLearners", 6}}}});
    world.loop.RunFor(seconds(1));
    // A round of planning before the pod is asked for.
    world.loop.PostAfter(milliseconds(500),
                         [&] { world.SubmitJob("two", {{"elastic", {{"maxLearners", 2}}}}); });
    return 500;
  };
  world.SubmitJob("one");
  ASSERT_TRUE(world.ReachSizes({{"one", 6}, {"two", 2}}));
  EXPECT_TRUE(again);
  EXPECT_EQ(world.PodsOf("one", "learner"), 6);
}

TEST_F(OperatorStory, AStatusThatCouldNotBeWrittenIsTriedAgainSoon) {
  const nlohmann::json all = {{"elastic", {{"minLearners", 8}}}};
  const auto told = [&](const char* job, const char* why) {
    return world.Status(job).value("reason", "").find(why) != std::string::npos;
  };
  world.SubmitJob("one", all);
  ASSERT_TRUE(world.ReachSizes({{"one", 8}}));
  world.SubmitJob("two", all);
  ASSERT_TRUE(world.Reach([&] { return told("two", "cannot be shrunk that far"); }));
  world.loop.RunFor(seconds(1));
  world.SubmitJob("three", all);
  ASSERT_TRUE(world.Reach([&] { return told("three", "other jobs are before it"); }));
  world.loop.RunFor(seconds(1));

  bool failed = false;
  world.server.fail = [&](const kube::HttpRequest& request) {
    const bool status = request.target.find("/three/status") != std::string::npos;
    return status && !std::exchange(failed, true) ? 500 : 0;
  };
  world.RemoveJob("two");
  ASSERT_TRUE(world.Reach([&] { return failed; }));
  world.loop.RunFor(seconds(3));
  EXPECT_TRUE(told("three", "cannot be shrunk that far")) << world.Status("three");
}

TEST_F(OperatorStory, ANodeThatComesAndGoesIsNoNewsForThoseThatWait) {
  world.SubmitJob("one", {{"template", {{"spec", {{"nodeSelector", {{"zone", "moon"}}}}}}}});
  ASSERT_TRUE(world.Reach([&] { return world.Phase("one") == "Queued"; }));
  const std::string first = world.Status("one").value("reason", "");
  world.loop.RunFor(seconds(1));
  const int before = world.server.writes;
  for (int i = 0; i < 60; ++i) {
    world.server.Change("/api/v1/nodes/gpu-1",
                        [&](nlohmann::json& node) { node["spec"]["unschedulable"] = i % 2 == 0; });
    world.loop.RunFor(seconds(1));
    if (i == 0) {
      EXPECT_EQ(world.server.writes, before);
    }
  }
  EXPECT_LE(world.server.writes - before, 2) << "at most every 30 s";
  world.server.Change("/api/v1/nodes/gpu-1",
                      [](nlohmann::json& node) { node["spec"]["unschedulable"] = true; });
  world.loop.RunFor(seconds(60));
  const nlohmann::json status = world.Status("one");
  EXPECT_NE(status.value("reason", ""), first) << "what stays so is told";
  for (const nlohmann::json& condition : status.at("conditions")) {
    if (condition.at("type") == "Progressing") {
      EXPECT_EQ(condition.at("message"), status.at("reason"));
    }
  }
}

// The operator is upgraded first: what it writes of a new field comes back without.
TEST_F(OperatorStory, AFieldThatTheClusterDoesNotKnowYetIsNotWrittenForEver) {
  world.server.unknown_field = "learnersAsked";
  world.learners_asked = 2;
  world.SubmitJob("one", {{"elastic", {{"maxLearners", 4}}}});
  ASSERT_TRUE(world.ReachSizes({{"one", 4}}));
  ASSERT_TRUE(world.ReachSizes({{"one", 2}})) << "it counts all the same";
  world.loop.RunFor(seconds(5));
  const int before = world.server.writes;
  world.loop.RunFor(seconds(100));
  EXPECT_LE(world.server.writes - before, 4) << "progress, at most every 30 s";
  EXPECT_EQ(world.Learners("one"), 2);
  // The program asks for all again.
  world.learners_asked.reset();
  ASSERT_TRUE(world.ReachSizes({{"one", 4}}));
  // The definition is upgraded too.
  world.server.unknown_field.clear();
  world.learners_asked = 3;
  ASSERT_TRUE(world.ReachSizes({{"one", 3}}));
  EXPECT_EQ(world.Status("one").value("learnersAsked", 0), 3);
}

TEST_F(OperatorStory, AServerThatAsksForTimeIsGivenIt) {
  int tries = 0;
  world.server.retry_after = "20";
  world.server.fail = [&](const kube::HttpRequest& request) {
    const bool pod = request.method == kube::HttpMethod::kPost &&
                     request.target.find("/pods?") != std::string::npos &&
                     request.target.find("dryRun=All") == std::string::npos;
    tries += pod ? 1 : 0;
    return pod ? 429 : 0;
  };
  world.SubmitJob("one");
  ASSERT_TRUE(world.Reach([&] { return tries == 1; }));
  world.loop.RunFor(seconds(19));
  EXPECT_EQ(tries, 1);
  world.server.retry_after = "86400";
  world.loop.RunFor(seconds(2));
  EXPECT_EQ(tries, 2);
  world.loop.RunFor(std::chrono::minutes(6));
  EXPECT_EQ(tries, 3) << "a job is not left alone for a day";
  world.server.fail = nullptr;
  ASSERT_TRUE(world.ReachSizes({{"one", 8}}));
}

TEST_F(OperatorStory, AServerThatRefusesPodsIsAskedLessAndLess) {
  world.SubmitJob("one", {{"elastic", {{"maxLearners", 4}}}});
  ASSERT_TRUE(world.ReachSizes({{"one", 4}}));
  world.server.refuse = [](const nlohmann::json&) { return std::string("exceeded quota: pods"); };
  world.CrashALearner("one");
  ASSERT_TRUE(
      world.Reach([&] { return std::ranges::contains(world.events, "one: RefusedByServer"); }));
  const int before = world.server.writes;
  world.loop.RunFor(seconds(60));
  EXPECT_LE(world.server.writes - before, 15);
  world.server.refuse = nullptr;
  ASSERT_TRUE(world.ReachSizes({{"one", 4}}));
}

// The quota of the one's namespace lets it have two learners.
TEST_F(OperatorStory, GpusThatAQuotaRefusesToOneJobGoToAnother) {
  world.server.refuse = [&](const nlohmann::json& pod) {
    const auto label = [&](std::string_view name) {
      return pod.at("metadata").at("labels").value(std::string(name), "");
    };
    const bool limited = label(controller::kLabelJob) == "limited" &&
                         label(controller::kLabelRole) == controller::kRoleLearner;
    const bool full = limited && world.PodsOf("limited", "learner") >= 2;
    return std::string(full ? "exceeded quota: gpus" : "");
  };
  world.SubmitJob("limited", {{"startTimeoutSeconds", 30}});
  world.SubmitJob("other");
  ASSERT_TRUE(
      world.Reach([&] { return std::ranges::contains(world.events, "limited: RefusedByServer"); }));
  EXPECT_EQ(world.PodsOf("other", "learner"), 4);
  world.loop.RunFor(seconds(60));
  EXPECT_EQ(world.Learners("limited"), 2);
  EXPECT_EQ(world.Learners("other"), 6);
  EXPECT_THAT(world.Status("limited").value("reason", ""), HasSubstr("did not start in time"));
  world.server.refuse = nullptr;
  ASSERT_TRUE(world.ReachSizes({{"limited", 4}, {"other", 4}}));
}

TEST_F(OperatorStory, GpusOfLearnersWhoseGatesAreRefusedGoToAnother) {
  world.server.fail = [](const kube::HttpRequest& request) {
    const bool gate = request.method == kube::HttpMethod::kPatch &&
                      request.target.find("/pods/denied-") != std::string::npos;
    return gate ? 403 : 0;
  };
  world.SubmitJob("denied", {{"startTimeoutSeconds", 30}});
  world.SubmitJob("other");
  ASSERT_TRUE(
      world.Reach([&] { return std::ranges::contains(world.events, "denied: RefusedByServer"); }));
  EXPECT_EQ(world.PodsOf("denied", "learner"), 4);
  world.loop.RunFor(seconds(60));
  EXPECT_EQ(world.PodsOf("denied", "learner"), 0);
  EXPECT_EQ(world.Learners("other"), 8);
  EXPECT_EQ(world.Phase("denied"), "Queued");
  world.server.fail = nullptr;
  ASSERT_TRUE(world.ReachSizes({{"denied", 4}, {"other", 4}}));
}

}  // namespace
}  // namespace pliant
