#include "trainer/membership/job_report.h"

#include <chrono>
#include <string>

#include <gtest/gtest.h>

#include "tests/unit/membership/learners.h"
#include "trainer/membership/fingerprint_keys.h"

namespace pliant {
namespace {

using namespace std::chrono_literals;

class JobReportTest : public testing::Test {
 protected:
  void Enter(const std::string& names, bool by_recovery = false) {
    history_.MakeCurrent(MembershipOf({1, ++counter_}, names), by_recovery, TimePoint{});
  }
  void Open(const std::string& names) {
    for (const char name : names) history_.AddOpened(Id(name), 1);
    if (history_.AllOpened()) history_.DropSuperseded();
  }
  void Commits(char name, Tick tick, std::uint64_t step, Duration at = {}) {
    roster_.SetAppliedTicks(Id(name), tick);
    roster_.SetWork(Id(name), step, std::nullopt);
    report_.UpdateCommitted(roster_, history_, TimePoint{} + at);
  }
  JobProgress Compose() const { return report_.Compose(3, roster_, history_, proposer_, faults_); }
  JobState State() const { return Compose().state; }

  std::uint64_t counter_ = 0;
  Roster roster_ = RosterOf("abc");
  MembershipHistory history_;
  Proposer proposer_{CoordinatorOptions{}};
  FaultEvidence faults_{CoordinatorOptions{}, TimePoint{}};
  JobReport report_{1000};
};

TEST_F(JobReportTest, StatesOfAJob) {
  EXPECT_EQ(State(), JobState::kWaiting);
  Enter("ab");
  EXPECT_EQ(State(), JobState::kResizing);
  Open("ab");
  EXPECT_EQ(State(), JobState::kRunning);
  proposer_.Begin(*proposer_.Next(roster_, history_, TimePoint{}), {1, 9}, roster_, history_,
                  TimePoint{});
  EXPECT_EQ(State(), JobState::kResizing);
  EXPECT_EQ(Compose().learners.back().state, LearnerState::kPreparing);
  proposer_.Drop();
  faults_.Report(Id('a'), {}, TimePoint{});
  EXPECT_EQ(State(), JobState::kRecovering);
  faults_.Reset();
  Enter("ab", true);
  EXPECT_EQ(State(), JobState::kRecovering);
  Open("ab");
  EXPECT_EQ(State(), JobState::kRunning);
  Enter("");
  EXPECT_EQ(State(), JobState::kDrained) << "the job drains";
  history_.Clear();
  EXPECT_EQ(State(), JobState::kWaiting);
  report_.SetDrained(true);
  EXPECT_EQ(State(), JobState::kDrained);
  report_.OnCompleted({.applied_ticks = 9, .parameters_sha256 = "abc"});
  EXPECT_EQ(State(), JobState::kCompleted);
  EXPECT_EQ(Compose().parameters_sha256, "abc");
  EXPECT_EQ(Compose().tick, 9);
}

TEST_F(JobReportTest, CommittedIsWhatAllHaveApplied) {
  Enter("ab");
  Commits('a', 5, 4);
  EXPECT_EQ(Compose().tick, std::nullopt) << "not all have opened";
  Open("ab");
  Commits('b', 4, 3);
  EXPECT_EQ(Compose().tick, 4);
  EXPECT_EQ(Compose().step, 3);
  roster_.ClearStep(Id('b'));
  Commits('a', 6, 5);
  EXPECT_EQ(Compose().step, 3) << "b has not reported its step";
}

TEST_F(JobReportTest, AProblemEndsWithProgressAMinuteLater) {
  Enter("a");
  Open("a");
  Commits('a', 1, 1, 1s);
  report_.SetProblem({"LearnerFailed", "b: no data"}, TimePoint{} + 10s);
  Commits('a', 2, 2, 69s);
  EXPECT_EQ(Compose().problem.reason, "LearnerFailed");
  Commits('a', 2, 2, 71s);
  EXPECT_EQ(Compose().problem.reason, "LearnerFailed") << "no tick is committed";
  Commits('a', 3, 3, 71s);
  EXPECT_EQ(Compose().problem, Problem{});
}

TEST_F(JobReportTest, UnusedGpusAreAProblemOfMembers) {
  roster_.Connect(7, {.learner = Id('b'), .fingerprint = {{kFingerprintGpuProblem, "no CUDA"}}},
                  TimePoint{});
  Enter("a");
  EXPECT_EQ(Compose().problem, Problem{});
  Enter("ab");
  EXPECT_EQ(Compose().problem, (Problem{"GpusUnusable", "no CUDA"}));
  report_.SetProblem({"LearnerFailed", "c: no data"}, TimePoint{});
  EXPECT_EQ(Compose().problem.reason, "LearnerFailed") << "it is the worse problem";
}

TEST_F(JobReportTest, ListsWhoIsThereOrAMember) {
  Enter("ab");
  roster_.Disconnect(Id('b'), TimePoint{});
  roster_.Disconnect(Id('c'), TimePoint{});
  roster_.MarkLeaving(Id('a'));
  roster_.Refuse(Id('x'), TimePoint{});
  Connect(roster_, "d", TimePoint{});
  std::string states;
  for (const LearnerProgress& learner : Compose().learners) {
    states += learner.id.name + " " + std::string(ToString(learner.state)) + ", ";
  }
  EXPECT_EQ(states, "a Leaving, b Member, d Ready, x Refused, ");
}

TEST_F(JobReportTest, TheSpeedIsOfThePresentMembership) {
  const Membership both = MembershipOf({1, 1}, "ab");
  const auto report = [&](std::uint64_t step, Duration at) {
    report_.SetStats({.samples_per_second = 100.0}, step, 0.5, TimePoint{} + at);
  };
  report_.BeginResize(Resize::Kind::kPlanned, "", std::nullopt, both, TimePoint{});
  report_.OnAllOpened({1, 1}, TimePoint{} + 1s);
  report(1, 2s);
  EXPECT_FALSE(Compose().speed);
  report(9, 8s);
  EXPECT_EQ(Compose().speed, (SteadySpeed{100, 0.5, 5}));
  report_.BeginResize(Resize::Kind::kPlanned, "", both, MembershipOf({1, 2}, "a"),
                      TimePoint{} + 9s);
  EXPECT_FALSE(Compose().speed);
}

TEST_F(JobReportTest, TheSpeedIsOfThePresentBatch) {
  const auto report = [&](std::uint64_t batch, std::uint64_t step, Duration at) {
    report_.SetStats({.samples_per_second = 100.0, .batch_size = batch}, step, 0.5,
                     TimePoint{} + at);
  };
  report(64, 0, 0s);
  report_.OnAllOpened({1, 1}, TimePoint{});
  report(128, 1, 1s);
  report(128, 9, 8s);
  EXPECT_EQ(Compose().speed, (SteadySpeed{100, 0.5, 6}));
  report(256, 10, 9s);
  EXPECT_FALSE(Compose().speed);
}

TEST_F(JobReportTest, AResizeIsDated) {
  const Membership none = MembershipOf({1, 1}, "ab");
  report_.BeginResize(Resize::Kind::kPlanned, "fair share", std::nullopt, none, TimePoint{} + 5s);
  report_.OnOpened({.membership = {1, 1}, .pause_seconds = 9, .ticks_lost = 2}, false);
  report_.OnOpened({.membership = {1, 1}, .pause_seconds = 0.5}, true);
  report_.OnAllOpened({1, 1}, TimePoint{} + 7s);
  report_.BeginResize(Resize::Kind::kRecovery, "", none, MembershipOf({1, 2}, "a"),
                      TimePoint{} + 8s);
  const auto resizes = Compose().resizes;
  ASSERT_EQ(resizes.size(), 2U);
  EXPECT_EQ(resizes[0].reason, "fair share");
  EXPECT_EQ(resizes[0].to, 2);
  EXPECT_EQ(resizes[0].requested_unix_seconds, 1005);
  EXPECT_EQ(resizes[0].running_unix_seconds, 1007);
  EXPECT_EQ(resizes[0].longest_pause_seconds, 0.5);
  EXPECT_EQ(resizes[0].steps_lost, 2U);
  EXPECT_EQ(resizes[1].from, 2);
  EXPECT_EQ(resizes[1].kind, Resize::Kind::kRecovery);
  EXPECT_FALSE(resizes[1].running_unix_seconds);
}

TEST(WhyRecovered, NamesALearnerThatWasLost) {
  const Membership before = MembershipOf({1, 1}, "aAbBc");
  const struct {
    const char* left;
    const char* want;
  } kCases[] = {
      {"aAc", "learner b was lost"},
      {"aAbc", "learner b was lost"},  // one of its ranks
      {"c", "learner a and 1 more were lost"},
      {"", "learner a and 2 more were lost"},
      {"aAbBc", "a connection between learners broke"},
  };
  for (const auto& test : kCases) {
    EXPECT_EQ(WhyRecovered(before, MembershipOf({1, 2}, test.left)), test.want) << test.left;
  }
}

}  // namespace
}  // namespace pliant
