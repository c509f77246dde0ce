#include "trainer/process/paced_program.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <chrono>
#include <fstream>
#include <string_view>
#include <system_error>
#include <thread>
#include <utility>

#include "base/format.h"
#include "base/log.h"

namespace pliant {
namespace {

using Clock = std::chrono::steady_clock;

// So often a shard that is kept looks at the file again.
constexpr std::chrono::milliseconds kLook(20);

}  // namespace

Result<Duration> ReadPace(const std::filesystem::path& file) {
  std::ifstream in(file);
  if (!in) return Duration::zero();
  std::array<char, 32> read{};
  in.read(read.data(), read.size());
  std::string_view text(read.data(), static_cast<std::size_t>(in.gcount()));
  while (text.ends_with('\n')) text.remove_suffix(1);
  const auto most = std::chrono::duration_cast<std::chrono::milliseconds>(PacedProgram::kMost);
  std::uint64_t value = 0;
  const auto [rest, error] = std::from_chars(text.begin(), text.end(), value);
  if (error != std::errc() || rest != text.end() || text.size() == read.size() ||
      value > static_cast<std::uint64_t>(most.count())) {
    return Invalid(Format(
        "PLIANT_PACE_FILE: {} must hold a whole number of milliseconds from 0 to {}, the least "
        "time of a shard",
        file.string(), most.count()));
  }
  return std::chrono::milliseconds(value);
}

PacedProgram::PacedProgram(Program& program, std::filesystem::path file)
    : program_(program), file_(std::move(file)) {}

Result<ShardSums> PacedProgram::ComputeShard(const ShardTask& task, std::span<float> gradient,
                                             std::span<std::byte> buffers, GradientSink* sink) {
  const Clock::time_point begin = Clock::now();
  auto sums = program_.ComputeShard(task, gradient, buffers, sink);
  if (sums) AwaitPace(task.kind, begin);
  return sums;
}

Result<ShardSums> PacedProgram::AddShard(const ShardTask& task, std::span<const float> left,
                                         std::span<float> gradient, bool& added) {
  const Clock::time_point begin = Clock::now();
  auto sums = program_.AddShard(task, left, gradient, added);
  if (sums) AwaitPace(task.kind, begin);
  return sums;
}

void PacedProgram::AwaitPace(TickKind kind, Clock::time_point begin) {
  if (kind != TickKind::kTrain) return;
  while (true) {
    const auto left = begin + Pace() - Clock::now();
    if (left <= left.zero()) return;
    std::this_thread::sleep_for(std::min<Clock::duration>(left, kLook));
  }
}

Duration PacedProgram::Pace() {
  const auto pace = ReadPace(file_);
  if (pace) {
    told_ = false;
    return *pace;
  }
  if (!std::exchange(told_, true))
    log::Warning("no pace is kept", {{"cause", pace.error().message}});
  return Duration::zero();
}

}  // namespace pliant
