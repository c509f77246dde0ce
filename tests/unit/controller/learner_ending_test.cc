#include "operator/controller/model/learner_ending.h"

#include <functional>

#include <gtest/gtest.h>

#include "tests/unit/controller/job_fixture.h"

namespace pliant::controller {
namespace {

struct EndingCase {
  const char* name;
  api::Pod pod;
  LearnerEnd end;
  std::string message;
};

api::Pod With(api::Pod pod, const std::function<void(api::Pod&)>& change) {
  change(pod);
  return pod;
}

TEST(LearnerEnding, FollowsFromExitCodeLastWordsAndConditions) {
  const api::Pod running = Learner(0, Life::kRunning);
  const EndingCase kCases[] = {
      {"completed", Ended(running, 0, R"({"reason":"Completed","message":"done"})"),
       LearnerEnd::kCompleted, "done"},
      {"drained", Ended(running, 0, R"({"reason":"Drained"})"), LearnerEnd::kDrained, ""},
      {"drained while being deleted", Deleting(Ended(running, 0, R"({"reason":"Drained"})")),
       LearnerEnd::kDrained, ""},
      {"failed with a reason", Ended(running, 1, R"({"reason":"Failed","message":"no data"})"),
       LearnerEnd::kFailed, "no data"},
      {"failed with words of its own", Ended(running, 2, "usage: train"), LearnerEnd::kFailed,
       "usage: train"},
      {"failed in silence", Ended(running, 1, ""), LearnerEnd::kFailed, "it left no message"},
      {"failed with a traceback in its log",
       Ended(running, 1, "Traceback (most recent call last):\n  ...\nKeyError: 'x'\n"),
       LearnerEnd::kFailed, "KeyError: 'x'"},
      {"failed after lines of a log",
       Ended(running, 1, "{\"message\":\"a\"}\n{\"message\":\"b\"}\n"), LearnerEnd::kFailed, "b"},
      {"out of memory",
       With(Ended(running, 137, ""),
            [](api::Pod& pod) { pod.containers[0].terminated->reason = "OOMKilled"; }),
       LearnerEnd::kFailed,
       "it needed more memory than its limit (OOMKilled): raise resources.limits.memory"},
      {"a container before it failed",
       With(running,
            [](api::Pod& pod) {
              pod.phase = api::PodPhase::kFailed;
              pod.containers = {{.name = "done", .terminated = api::Termination{}},
                                {.name = "fetch",
                                 .terminated = api::Termination{.exit_code = 3, .message = "404"}},
                                {.name = "learner", .waiting_reason = "PodInitializing"}};
            }),
       LearnerEnd::kFailed, "container fetch exited with code 3: 404"},
      {"exit 0 in silence: a program that is no learner", Ended(running, 0, ""),
       LearnerEnd::kFailed, "its program ended before the training was complete"},
      {"claims completion, but failed", Ended(running, 1, R"({"reason":"Completed"})"),
       LearnerEnd::kFailed, "it left no message"},
      {"last words of wrong kinds", Ended(running, 1, R"({"reason":5,"message":[1]})"),
       LearnerEnd::kFailed, "it left no message"},
      {"killed by its deletion", Deleting(Ended(running, 137, "")), LearnerEnd::kDisrupted, ""},
      {"evicted",
       With(Ended(running, 137, ""),
            [](api::Pod& pod) {
              pod.conditions = {
                  {.type = "DisruptionTarget", .status = true, .reason = "EvictionByEvictionAPI"}};
              pod.message = "The node was low on memory";
            }),
       LearnerEnd::kDisrupted, "The node was low on memory"},
      {"lost by a node that restarted",
       With(Ended(running, 137, "The container could not be located when the pod was terminated"),
            [](api::Pod& pod) { pod.containers[0].terminated->reason = "ContainerStatusUnknown"; }),
       LearnerEnd::kNodeFault, "its node restarted, or lost it"},
      {"on a broken GPU",
       Ended(running, 1, R"({"reason":"GpuFault","step":7,"message":"CUDA: ECC"})"),
       LearnerEnd::kNodeFault, "its GPU is broken: CUDA: ECC"},
      {"on a broken GPU, as it says, but without an error",
       Ended(running, 0, R"({"reason":"GpuFault","message":"so what"})"), LearnerEnd::kFailed,
       "so what"},
      {"refused by its node",
       With(running,
            [](api::Pod& pod) {
              pod.phase = api::PodPhase::kFailed;
              pod.reason = "UnexpectedAdmissionError";
              pod.containers.clear();
            }),
       LearnerEnd::kNodeFault, "UnexpectedAdmissionError"},
  };
  for (const EndingCase& c : kCases) {
    const auto ending = EndingOf(c.pod);
    ASSERT_TRUE(ending) << c.name;
    EXPECT_EQ(ending->end, c.end) << c.name;
    EXPECT_EQ(ending->message, c.message) << c.name;
  }
}

TEST(LearnerEnding, NamesTheSignal) {
  EXPECT_EQ(DescribeExitCode(0), "code 0");
  EXPECT_EQ(DescribeExitCode(1), "code 1");
  EXPECT_EQ(DescribeExitCode(137), "code 137 (SIGKILL)");
  EXPECT_EQ(DescribeExitCode(139), "code 139 (SIGSEGV)");
  EXPECT_EQ(DescribeExitCode(255), "code 255");
}

TEST(LearnerEnding, ALivingPodHasNone) {
  EXPECT_EQ(EndingOf(Learner(0, Life::kRunning)), std::nullopt);
  EXPECT_EQ(EndingOf(Deleting(Learner(0, Life::kRunning))), std::nullopt);
}

}  // namespace
}  // namespace pliant::controller
