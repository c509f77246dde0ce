#pragma once

#include <chrono>
#include <filesystem>
#include <optional>

#include "base/event_loop.h"
#include "base/result.h"
#include "trainer/runtime/operation.h"
#include "trainer/runtime/program_thread.h"

namespace pliant {

// A thread whose program's training shards take at least as long as a file says, in whole
// milliseconds: a rehearsal on processors of what takes that long on GPUs. The file may change at
// any time, and holds for the shard under way; where there is none, nothing waits. The bits are the
// program's.
class PacedThread final : public ProgramThread, private Operation {
 public:
  static constexpr Duration kMost = std::chrono::seconds(10);  // so long a shard may be kept

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

  // Of the operation that runs.
  Operation* operation_ = nullptr;
  // When the training shard under way began; none is.
  std::optional<std::chrono::steady_clock::time_point> begun_;
  mutable bool told_ = false;  // that the file makes no sense
};

// What the file says: none, if it is not there.
// kInvalid: something else than a whole number of milliseconds up to PacedThread::kMost.
Result<Duration> ReadPace(const std::filesystem::path& file);

}  // namespace pliant
