#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "trainer/data/schedule.h"
#include "trainer/runtime/program.h"

namespace pliant::sim {

// A small model whose state tells of every mistake: it depends on each sample, on the order of all
// sums, on the buffers of shard 0, and on the number of steps.
class ToyProgram final : public Program {
 public:
  static constexpr std::size_t kParameters = 40;
  static constexpr std::size_t kBuffers = 6;

  // `ballast_bytes`: of state that does not change, to be transferred all the same.
  explicit ToyProgram(const DataSpec& data, std::size_t ballast_bytes = 0);

  const ProgramInfo& info() const override { return info_; }
  Result<ShardSums> ComputeShard(const ShardTask& task, std::span<float> gradient,
                                 std::span<std::byte> buffers, GradientSink* sink) override;
  Status Commit(const CommitTask& task) override;
  StateDict State() override;
  Status LoadedState() override;

  std::uint64_t steps() const { return static_cast<std::uint64_t>(steps_); }
  std::uint64_t Hash();  // of the whole state, but for the ballast

 private:
  ProgramInfo info_;
  std::array<float, kParameters> weights_{};
  std::array<float, kParameters> momentum_{};
  std::array<float, kBuffers> buffers_{};
  std::int64_t steps_ = 0;
  std::vector<std::vector<std::byte>> ballast_;
};

// What an undisturbed training comes to, computed without any of the runtime.
struct Reference {
  std::vector<std::uint64_t> hash_after;  // optimizer steps
  std::string parameters_sha256;          // at the end
};
Reference ComputeReference(const Schedule& schedule);

}  // namespace pliant::sim
