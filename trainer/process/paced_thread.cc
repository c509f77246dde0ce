#include "trainer/process/paced_thread.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <chrono>
#include <fstream>
#include <string_view>
#include <system_error>
#include <thread>
#include <utility>
#include <variant>

#include "base/format.h"
#include "base/log.h"

namespace pliant {
namespace {

using Clock = std::chrono::steady_clock;

// How often a waiting shard reads the file again.
constexpr std::chrono::milliseconds kLook(20);

}  // namespace

Result<Duration> ReadPace(const std::filesystem::path& file) {
  std::ifstream in(file);
  if (!in) return Duration::zero();
  std::array<char, 32> read{};
  in.read(read.data(), read.size());
  std::string_view text(read.data(), static_cast<std::size_t>(in.gcount()));
  while (text.ends_with('\n')) text.remove_suffix(1);
  const auto most = std::chrono::duration_cast<std::chrono::milliseconds>(PacedThread::kMax);
  std::uint64_t value = 0;
  const auto [rest, error] = std::from_chars(text.begin(), text.end(), value);
  if (error != std::errc() || rest != text.end() || text.size() == read.size() ||
      value > static_cast<std::uint64_t>(most.count())) {
    return Invalid(
        Format("PLIANT_PACE_FILE: {} must hold a whole number of milliseconds from 0 to {}, the "
               "minimum time of a shard",
               file.string(), most.count()));
  }
  return std::chrono::milliseconds(value);
}

PacedThread::PacedThread(ProgramThread& thread, std::filesystem::path file)
    : thread_(thread), file_(std::move(file)) {}

void PacedThread::Run(Operation& operation, Over over) {
  operation_ = &operation;
  thread_.Run(*this, std::move(over));
}

std::optional<Work> PacedThread::Next() {
  std::optional<Work> work = operation_->Next();
  const auto* const shard = work ? std::get_if<ShardWork>(&*work) : nullptr;
  begun_.reset();
  if (shard != nullptr && shard->task->kind == TickKind::kTrain) begun_ = Clock::now();
  return work;
}

void PacedThread::Done(Result<ShardSums> sums) {
  if (sums && begun_) AwaitPace();
  operation_->Done(std::move(sums));
}

void PacedThread::AwaitPace() const {
  while (true) {
    const auto left = *begun_ + Pace() - Clock::now();
    if (left <= left.zero()) return;
    std::this_thread::sleep_for(std::min<Clock::duration>(left, kLook));
  }
}

Duration PacedThread::Pace() const {
  const auto pace = ReadPace(file_);
  if (pace) {
    logged_ = false;
    return *pace;
  }
  if (!std::exchange(logged_, true))
    log::Warning("the pace file is ignored", {{"cause", pace.error().message}});
  return Duration::zero();
}

}  // namespace pliant
