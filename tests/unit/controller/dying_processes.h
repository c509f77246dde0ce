#pragma once

#include <csignal>
#include <cstdio>
#include <memory>
#include <string>
#include <utility>

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include "operator/controller/rounds/crash_notes.h"

namespace pliant::controller {

// Processes that die during their work, and the file of notes that they leave.
class DyingProcesses {
 public:
  DyingProcesses() { std::remove(file_.c_str()); }
  ~DyingProcesses() { std::remove(file_.c_str()); }
  DyingProcesses(const DyingProcesses&) = delete;
  DyingProcesses& operator=(const DyingProcesses&) = delete;

  const std::string& file() const { return file_; }

  // The notes that the next process reads.
  std::unique_ptr<CrashNotes> Notes() const {
    auto notes = CrashNotes::Open(file_);
    EXPECT_TRUE(notes) << notes.error();
    return *std::move(notes);
  }

  // Another process runs `deed`, and dies during it or directly afterwards.
  template <typename Deed>
  void DieOf(Deed deed) const {
    const pid_t child = fork();
    if (child == 0) {
      const auto notes = CrashNotes::Open(file_);
      deed(notes->get());
      raise(SIGKILL);
    }
    int status = 0;
    ASSERT_EQ(waitpid(child, &status, 0), child);
  }
  void DieAt(const api::ObjectMeta& job) const {
    DieOf([&](CrashNotes* notes) {
      const CrashNotes::Mark busy = CrashNotes::BusyWith(notes, job);
      raise(SIGKILL);
    });
  }

 private:
  const std::string file_ = testing::TempDir() + "/crash-notes-" + std::to_string(getpid());
};

}  // namespace pliant::controller
