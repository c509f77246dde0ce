#include "operator/controller/rounds/crash_notes.h"

#include <cstdio>
#include <cstdlib>
#include <fstream>

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/unit/controller/job_fixture.h"

namespace pliant::controller {
namespace {

class CrashNotesTest : public testing::Test {
 protected:
  CrashNotesTest() { std::remove(file_.c_str()); }
  ~CrashNotesTest() override { std::remove(file_.c_str()); }

  std::unique_ptr<CrashNotes> Open() {
    auto notes = CrashNotes::Open(file_);
    EXPECT_TRUE(notes) << notes.error();
    return *std::move(notes);
  }

  // Another process does this, and is killed.
  template <typename Deed>
  void DieAfter(Deed deed) {
    const pid_t child = fork();
    if (child == 0) {
      const auto notes = CrashNotes::Open(file_);
      deed(notes->get());
      _exit(1);  // not reached by who dies within the deed
    }
    int status = 0;
    ASSERT_EQ(waitpid(child, &status, 0), child);
  }
  void DieAt(const api::ObjectMeta& job) {
    DieAfter([&](CrashNotes* notes) {
      const CrashNotes::Mark busy = CrashNotes::BusyWith(notes, job);
      raise(SIGKILL);
    });
  }

  const std::string file_ = testing::TempDir() + "/crash-notes-" + std::to_string(getpid());
  const api::ObjectMeta job_ = NewJob().meta;
};

TEST_F(CrashNotesTest, AProcessThatDiesLeavesTheJobItWasBusyWith) {
  EXPECT_EQ(Open()->DeathsAt(job_), 0);
  DieAt(job_);
  EXPECT_EQ(Open()->DeathsAt(job_), 1);
  EXPECT_EQ(Open()->DeathsAt(job_), 1) << "each death counts once";
  DieAt(job_);
  EXPECT_EQ(Open()->DeathsAt(job_), 2);

  api::ObjectMeta edited = job_;
  edited.generation = 2;
  EXPECT_EQ(Open()->DeathsAt(edited), 0);
  api::ObjectMeta other = job_;
  other.uid = "another";
  EXPECT_EQ(Open()->DeathsAt(other), 0);
  EXPECT_EQ(Open()->DeathsAtPlan(), 0);
}

TEST_F(CrashNotesTest, AJobAtWhichTwoDiedIsLeftAloneAndThatIsToldByOneMore) {
  EXPECT_EQ(QuarantineOf(nullptr, job_), Quarantine::kNone);
  for (const Quarantine want : {Quarantine::kNone, Quarantine::kNone, Quarantine::kToBeTold,
                                Quarantine::kSilent, Quarantine::kSilent}) {
    EXPECT_EQ(QuarantineOf(Open().get(), job_), want);
    DieAt(job_);
  }
}

TEST_F(CrashNotesTest, WhatWasDoneIsNoReasonForADeath) {
  DieAfter([&](CrashNotes* notes) {
    {
      const CrashNotes::Mark busy = CrashNotes::BusyWith(notes, job_);
    }
    raise(SIGKILL);
  });
  EXPECT_EQ(Open()->DeathsAt(job_), 0);
}

TEST_F(CrashNotesTest, KnowsThatAProcessDiedAtThePlan) {
  DieAfter([&](CrashNotes* notes) {
    const CrashNotes::Mark busy = CrashNotes::BusyWithPlan(notes);
    raise(SIGKILL);
  });
  EXPECT_EQ(Open()->DeathsAtPlan(), 1);
  EXPECT_EQ(Open()->DeathsAt(job_), 0);
}

TEST_F(CrashNotesTest, TheOldestAreForgotten) {
  api::ObjectMeta job = job_;
  for (int i = 0; i < 200; ++i) {
    job.uid = std::to_string(i);
    DieAt(job);
  }
  EXPECT_EQ(Open()->DeathsAt(job), 1);
  job.uid = "0";
  EXPECT_EQ(Open()->DeathsAt(job), 0);
}

TEST_F(CrashNotesTest, AFileOfSomethingElseIsBegunAnew) {
  std::ofstream(file_) << std::string(100'000, 'x');
  EXPECT_EQ(Open()->DeathsAt(job_), 0);
  DieAt(job_);
  EXPECT_EQ(Open()->DeathsAt(job_), 1);
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
