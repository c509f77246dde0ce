#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "trainer/data/noise_window.h"
#include "trainer/data/schedule.h"
#include "trainer/protocol/program.h"

namespace pliant::sim {

// The program's behaviour apart from training.
struct Habits {
  bool wants_evaluation_results = false;
  std::uint64_t ends_at_step = 0;  // 0: when all epochs have ended
  std::uint64_t saves_every = 0;   // steps between checkpoints that it asks for; 0: none
  std::uint64_t process_seed = 0;  // of random numbers that depend on the process: a fault
  bool weighs = false;             // by something other than samples; it also reports named sums
  auto operator<=>(const Habits&) const = default;
};

// A small model whose state reveals every mistake: it depends on each sample, on the order of all
// sums, on the buffers of shard 0, on the number of steps and, if it receives them, on evaluations.
// If it weighs, it depends on the weights and the named sums of each step, too.
class ToyProgram final : public Program {
 public:
  static constexpr std::size_t kParameters = 40;
  static constexpr std::size_t kBuffers = 6;

  // `ballast_bytes`: size of state that never changes but is transferred too.
  explicit ToyProgram(const DataSpec& data, std::size_t ballast_bytes = 0, Habits habits = {});

  const ProgramInfo& info() const override { return info_; }
  Result<ShardSums> ComputeShard(const ShardTask& task, std::span<float> gradient,
                                 std::span<std::byte> buffers, GradientSink* sink) override;
  Status Commit(const CommitTask& task) override;
  Status Evaluated(const EvaluationTask& task) override;
  ProgramWishes wishes() const override {
    return {.end = habits_.ends_at_step > 0 && steps() == habits_.ends_at_step,
            .checkpoint = habits_.saves_every > 0 && steps() % habits_.saves_every == 0};
  }
  StateDict State() override;
  Status LoadedState() override;

  std::uint64_t steps() const { return static_cast<std::uint64_t>(steps_); }
  // Number of applied steps, and of evaluations received.
  std::pair<std::int64_t, std::int64_t> position() const { return {steps_, evaluations_}; }
  std::uint64_t Hash();  // of the whole state without the ballast

 private:
  ProgramInfo info_;
  const Habits habits_;
  std::array<float, kParameters> weights_{};
  std::array<float, kParameters> momentum_{};
  std::array<float, kBuffers> buffers_{};
  std::int64_t steps_ = 0;
  std::int64_t evaluations_ = 0;
  std::vector<std::vector<std::byte>> ballast_;
};

// The result of an undisturbed training, computed without any part of the runtime.
struct Reference {
  std::map<std::pair<std::int64_t, std::int64_t>, std::uint64_t> hash_at;  // position
  std::map<std::uint64_t, NoiseWindow> noise_after;                        // number of steps
  std::string parameters_sha256;                                           // at the end
  std::optional<Schedule> schedule;  // with the segments that the noise scale decided
  Tick ticks = 0;                    // total number of ticks
};
Reference ComputeReference(Schedule schedule, Habits habits = {});

}  // namespace pliant::sim
