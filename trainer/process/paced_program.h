#pragma once

#include <filesystem>
#include <span>

#include "base/event_loop.h"
#include "trainer/protocol/program.h"

namespace pliant {

// A program whose training shards take at least as long as a file says, in whole milliseconds: a
// rehearsal on processors of what takes that long on GPUs. The file may change at any time, and
// holds for the shard under way; where there is none, nothing waits. The bits are the program's.
class PacedProgram final : public Program {
 public:
  static constexpr Duration kMost = std::chrono::seconds(10);  // so long a shard may be kept

  // Borrows `program`.
  PacedProgram(Program& program, std::filesystem::path file);

  const ProgramInfo& info() const override { return program_.info(); }
  Result<ShardSums> ComputeShard(const ShardTask& task, std::span<float> gradient,
                                 std::span<std::byte> buffers, GradientSink* sink) override;
  Result<ShardSums> AddShard(const ShardTask& task, std::span<const float> left,
                             std::span<float> gradient, bool& added) override;
  Duration data_wait() const override { return program_.data_wait(); }
  Status Commit(const CommitTask& task) override { return program_.Commit(task); }
  Status Evaluated(const EvaluationTask& task) override { return program_.Evaluated(task); }
  bool wants_end() const override { return program_.wants_end(); }
  StateDict State() override { return program_.State(); }
  Status LoadedState() override { return program_.LoadedState(); }

 private:
  void AwaitPace(TickKind kind, std::chrono::steady_clock::time_point begin);
  Duration Pace();

  Program& program_;
  const std::filesystem::path file_;
  bool told_ = false;  // that the file makes no sense
};

// What the file says: none, if it is not there.
// kInvalid: something else than a whole number of milliseconds up to PacedProgram::kMost.
Result<Duration> ReadPace(const std::filesystem::path& file);

}  // namespace pliant
