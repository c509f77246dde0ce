// Requests that the API server fails to answer, as when an admission webhook is down or slow: the
// job's status reports it, its requests become rarer, and other jobs are not held up.
#include <chrono>
#include <string>
#include <utility>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/simulation/operator/story_requests.h"
#include "tests/simulation/operator/story_world.h"

namespace pliant::operator_sim {
namespace {

using namespace std::chrono_literals;
using testing::Contains;
using testing::HasSubstr;
using testing::Not;

// A webhook that is down is no verdict on the template.
TEST_F(OperatorStory, ATemplateThatCannotBeCheckedIsReportedAndTriedAgain) {
  for (const auto& [job, answer] : {std::pair{"one", 500}, {"late", 504}}) {
    world.interfere = AnswerWith(answer, IsDryRun);
    world.Submit(job, {{"template", {{"metadata", {{"labels", {{"team", job}}}}}}}});
    ASSERT_TRUE(world.ReachEvent(std::string(job) + ": TemplateUnchecked"));
    EXPECT_EQ(world.Phase(job), "Queued");
    EXPECT_THAT(world.Status(job).value("reason", ""), HasSubstr("failed calling webhook"));
    const int before = world.Writes();
    world.loop.RunFor(60s);
    EXPECT_EQ(world.Writes(), before) << "it is reported once";
    world.interfere = nullptr;
    ASSERT_TRUE(world.ReachSizes({{job, 8}}));
    world.Delete(job);
  }
}

// The API server waits 10 s for a webhook by default.
TEST_F(OperatorStory, ASlowPodCreationDelaysNothingElse) {
  int pods = 0;
  world.interfere = [&](const kube::HttpRequest& request) {
    if (request.method == kube::HttpMethod::kGet) return Fault::kNone;
    if (PostsPod(request)) ++pods;
    EXPECT_EQ(request.deadline > 10s, PostsPod(request)) << request.target;
    return Fault::kNone;
  };
  world.Submit("one");
  ASSERT_TRUE(world.ReachSizes({{"one", 8}}));
  EXPECT_GE(pods, 10) << "a check, a coordinator and the learners";

  world.webhooks_hang = true;
  world.Submit("two", {{"template", {{"metadata", {{"labels", {{"team", "two"}}}}}}}});
  world.Edit("one", {{"elastic", {{"maxLearners", 3}}}});
  ASSERT_TRUE(world.ReachSizes({{"one", 3}}));
  EXPECT_EQ(world.Phase("two"), "");
  world.webhooks_hang = false;
  ASSERT_TRUE(world.ReachSizes({{"one", 3}, {"two", 5}}));
}

// The server fails to answer each matching request, in either of two ways. The job's status reports
// it, and the operator retries at most `max_tries` times in the minute after.
void ExpectToldAndAskedLess(StoryWorld& world, const Matches& matches, int max_tries) {
  for (const auto& [job, answer] : {std::pair{"one", 500}, {"late", 504}}) {
    int tries = 0;
    world.interfere = AnswerWith(answer, [&](const kube::HttpRequest& request) {
      const bool matched = matches(request);
      tries += matched ? 1 : 0;
      return matched;
    });
    world.Submit(job);
    ASSERT_TRUE(world.ReachEvent(std::string(job) + ": UnansweredByServer"));
    EXPECT_THAT(world.Status(job).at("conditions").dump(), HasSubstr("failed calling webhook"));
    const int before = tries;
    world.loop.RunFor(60s);
    EXPECT_LE(tries - before, max_tries);
    world.interfere = nullptr;
    ASSERT_TRUE(world.ReachSizes({{job, 8}}));
    world.Delete(job);
  }
}

// A failure to create the real pod is reported like a failure of the dry run.
TEST_F(OperatorStory, AnUnansweredPodCreationIsReportedAndRetriedLessAndLess) {
  ExpectToldAndAskedLess(world, MakesLearner, 8);
}

TEST_F(OperatorStory, GpusOfPodsThatTheServerDoesNotAnswerForGoToAnother) {
  world.interfere = AnswerWith(504, [](const kube::HttpRequest& request) {
    return MakesLearner(request) &&
           request.body.find(R"("pliant.dev/job":"stuck")") != std::string::npos;
  });
  world.Submit("stuck", {{"startTimeoutSeconds", 30}});
  ASSERT_TRUE(world.ReachEvent("stuck: UnansweredByServer"));
  world.Submit("other", {{"elastic", {{"minLearners", 8}}}});
  ASSERT_TRUE(world.ReachSizes({{"other", 8}}));
}

// The webhook is called for each update of a pod: the pods are created, but no gate can be opened.
TEST_F(OperatorStory, AnUnansweredGateOpeningIsReportedAndRetriedLessAndLess) {
  ExpectToldAndAskedLess(world, OpensGate, 16);  // two tries each
}

TEST_F(OperatorStory, GpusBehindGatesThatTheServerDoesNotAnswerForGoToAnother) {
  world.Submit("stuck", {{"startTimeoutSeconds", 30}});
  ASSERT_TRUE(world.Reach([&] { return world.CountPods("stuck", "coordinator") > 0; }));
  world.interfere = AnswerWith(504, [](const kube::HttpRequest& request) {
    return OpensGate(request) && request.target.find("/pods/stuck-") != std::string::npos;
  });
  ASSERT_TRUE(world.ReachEvent("stuck: UnansweredByServer"));
  world.Submit("other", {{"elastic", {{"minLearners", 8}}}});
  ASSERT_TRUE(world.ReachSizes({{"other", 8}}));
}

// The server answers every time too late, but it has opened the gates: the report does not stay.
TEST_F(OperatorStory, AGateThatWasOpenedAfterAllIsNoTrouble) {
  int late = 0;
  world.interfere = AnswerLate(
      [&](const kube::HttpRequest& request) { return OpensGate(request) && late++ < 16; });
  world.Submit("one");
  ASSERT_TRUE(world.ReachSizes({{"one", 8}}));
  EXPECT_GT(late, 0);
}

// The server answers too late, but it has created the pod: nothing is reported.
TEST_F(OperatorStory, APodThatWasMadeAfterAllIsNoTrouble) {
  bool late = false;
  world.interfere = AnswerLate([&](const kube::HttpRequest& request) {
    return MakesLearner(request) && !std::exchange(late, true);
  });
  world.Submit("one");
  ASSERT_TRUE(world.ReachSizes({{"one", 8}}));
  EXPECT_TRUE(late);
  EXPECT_THAT(world.events, Not(Contains("one: UnansweredByServer")));
}

// The job is deleted and created again while a batch of the old job waits for the server, which
// then does not say whether it created the pod.
TEST_F(OperatorStory, AJobIsMadeAgainUnderItsNameWhileItIsActedOn) {
  bool again = false;
  world.interfere = AnswerWith(500, [&](const kube::HttpRequest& request) {
    if (!MakesLearner(request) || std::exchange(again, true)) return false;
    world.Delete("one");
    world.Submit("one", {{"elastic", {{"maxLearners", 6}}}});
    world.loop.RunFor(1s);
    // A round of planning before the next try for the pod.
    world.loop.PostAfter(500ms, [&] { world.Submit("two", {{"elastic", {{"maxLearners", 2}}}}); });
    return true;
  });
  world.Submit("one");
  ASSERT_TRUE(world.ReachSizes({{"one", 6}, {"two", 2}}));
  EXPECT_TRUE(again);
  EXPECT_EQ(world.CountPods("one", "learner"), 6);
}

TEST_F(OperatorStory, AStatusThatCouldNotBeWrittenIsTriedAgainSoon) {
  const Json all = {{"elastic", {{"minLearners", 8}}}};
  const auto told = [&](const char* job, const char* why) {
    return world.Status(job).value("reason", "").find(why) != std::string::npos;
  };
  world.Submit("one", all);
  ASSERT_TRUE(world.ReachSizes({{"one", 8}}));
  world.Submit("two", all);
  ASSERT_TRUE(world.Reach([&] { return told("two", "cannot be shrunk further"); }));
  world.loop.RunFor(1s);
  world.Submit("three", all);
  ASSERT_TRUE(world.Reach([&] { return told("three", "1 job is before it"); }));
  world.loop.RunFor(1s);

  bool failed = false;
  world.interfere = AnswerWith(500, [&](const kube::HttpRequest& request) {
    const bool status = request.target.find("/three/status") != std::string::npos;
    return status && !std::exchange(failed, true);
  });
  world.Delete("two");
  ASSERT_TRUE(world.Reach([&] { return failed; }));
  world.loop.RunFor(3s);
  EXPECT_TRUE(told("three", "cannot be shrunk further")) << world.Status("three");
}

TEST_F(OperatorStory, AServerThatAsksForTimeIsGivenIt) {
  int tries = 0;
  std::string time = "20";
  world.interfere = [&](const kube::HttpRequest& request) {
    const bool pod = PostsPod(request) && !IsDryRun(request);
    tries += pod ? 1 : 0;
    return pod ? Disposition(Refusal(429, {{"Retry-After", time}})) : Disposition(Fault::kNone);
  };
  world.Submit("one");
  ASSERT_TRUE(world.Reach([&] { return tries == 1; }));
  world.loop.RunFor(19s);
  EXPECT_EQ(tries, 1);
  time = "86400";
  world.loop.RunFor(2s);
  EXPECT_EQ(tries, 2);
  world.loop.RunFor(6min);
  EXPECT_EQ(tries, 3) << "the wait is capped far below a day";
  world.interfere = nullptr;
  ASSERT_TRUE(world.ReachSizes({{"one", 8}}));
}

}  // namespace
}  // namespace pliant::operator_sim
