#pragma once

#include <chrono>
#include <filesystem>
#include <optional>

#include "base/event_loop.h"
#include "base/result.h"
#include "trainer/runtime/operation.h"
#include "trainer/runtime/program_thread.h"

namespace pliant {

// Makes each training shard of a program take at least as long as a file says, in whole
// milliseconds, to rehearse on CPUs what takes that long on GPUs. The file may change at any time,
// also for the current shard; without it nothing waits. The bits stay the program's.
class PacedThread final : public ProgramThread, private Operation {
 public:
  static constexpr Duration kMax = std::chrono::seconds(10);  // maximum time of a shard

  // Borrows `thread`.
  PacedThread(ProgramThread& thread, std::filesystem::path file);

  ProgramView& program() override { return thread_.program(); }
  void Run(Operation& operation, Over over) override;
  void Stop() override { thread_.Stop(); }

 private:
  std::optional<Work> Next() override;
  void Done(Result<ShardSums> sums) override;
  bool over() const override { return operation_->over(); }

  void AwaitPace() const;
  Duration Pace() const;

  ProgramThread& thread_;
  const std::filesystem::path file_;

  // The running operation.
  Operation* operation_ = nullptr;
  // When the current training shard began; none: there is none.
  std::optional<std::chrono::steady_clock::time_point> begun_;
  mutable bool logged_ = false;  // the invalid file was logged
};

// The time in the file; zero without a file. kInvalid: not a whole number of milliseconds up to
// PacedThread::kMax.
Result<Duration> ReadPace(const std::filesystem::path& file);

}  // namespace pliant
