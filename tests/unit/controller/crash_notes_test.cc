#include "operator/controller/rounds/crash_notes.h"

#include <csignal>
#include <fstream>
#include <string>

#include <gtest/gtest.h>

#include "tests/unit/controller/dying_processes.h"
#include "tests/unit/controller/job_fixture.h"

namespace pliant::controller {
namespace {

class CrashNotesTest : public testing::Test {
 protected:
  const DyingProcesses processes_;
  const api::ObjectMeta job_ = NewJob().meta;
};

TEST_F(CrashNotesTest, AProcessThatDiesLeavesTheJobItWasBusyWith) {
  EXPECT_EQ(processes_.Notes()->DeathsAt(job_), 0);
  processes_.DieAt(job_);
  EXPECT_EQ(processes_.Notes()->DeathsAt(job_), 1);
  EXPECT_EQ(processes_.Notes()->DeathsAt(job_), 1) << "each death counts once";
  processes_.DieAt(job_);
  EXPECT_EQ(processes_.Notes()->DeathsAt(job_), 2);

  api::ObjectMeta edited = job_;
  edited.generation = 2;
  EXPECT_EQ(processes_.Notes()->DeathsAt(edited), 0);
  api::ObjectMeta other = job_;
  other.uid = "another";
  EXPECT_EQ(processes_.Notes()->DeathsAt(other), 0);
  EXPECT_EQ(processes_.Notes()->DeathsAtPlan(), 0);
}

TEST_F(CrashNotesTest, AJobIsQuarantinedAfterTwoDeathsAndReportedOnce) {
  EXPECT_EQ(QuarantineOf(nullptr, job_), Quarantine::kNone);
  for (const Quarantine want : {Quarantine::kNone, Quarantine::kNone, Quarantine::kToBeReported,
                                Quarantine::kSilent, Quarantine::kSilent}) {
    EXPECT_EQ(QuarantineOf(processes_.Notes().get(), job_), want);
    processes_.DieAt(job_);
  }
}

TEST_F(CrashNotesTest, FinishedWorkIsNotBlamedForADeath) {
  processes_.DieOf([&](CrashNotes* notes) {
    {
      const CrashNotes::Mark busy = CrashNotes::BusyWith(notes, job_);
    }
    raise(SIGKILL);
  });
  EXPECT_EQ(processes_.Notes()->DeathsAt(job_), 0);
}

TEST_F(CrashNotesTest, KnowsThatAProcessDiedAtThePlan) {
  processes_.DieOf([&](CrashNotes* notes) {
    const CrashNotes::Mark busy = CrashNotes::BusyWithPlan(notes);
    raise(SIGKILL);
  });
  EXPECT_EQ(processes_.Notes()->DeathsAtPlan(), 1);
  EXPECT_EQ(processes_.Notes()->DeathsAt(job_), 0);
}

TEST_F(CrashNotesTest, TheOldestAreForgotten) {
  api::ObjectMeta job = job_;
  for (int i = 0; i < 200; ++i) {
    job.uid = std::to_string(i);
    processes_.DieAt(job);
  }
  EXPECT_EQ(processes_.Notes()->DeathsAt(job), 1);
  job.uid = "0";
  EXPECT_EQ(processes_.Notes()->DeathsAt(job), 0);
}

TEST_F(CrashNotesTest, AFileWithOtherContentIsReplaced) {
  std::ofstream(processes_.file()) << std::string(100'000, 'x');
  EXPECT_EQ(processes_.Notes()->DeathsAt(job_), 0);
  processes_.DieAt(job_);
  EXPECT_EQ(processes_.Notes()->DeathsAt(job_), 1);
}

TEST_F(CrashNotesTest, AFolderThatIsNotThereIsAnError) {
  const auto notes = CrashNotes::Open("/no/such/folder/notes");
  ASSERT_FALSE(notes);
  EXPECT_EQ(notes.error().code, ErrorCode::kUnavailable);
}

TEST_F(CrashNotesTest, WithoutAFileNothingIsNoted) {
  const CrashNotes::Mark busy = CrashNotes::BusyWith(nullptr, job_);
  const CrashNotes::Mark plan = CrashNotes::BusyWithPlan(nullptr);
}

}  // namespace
}  // namespace pliant::controller
