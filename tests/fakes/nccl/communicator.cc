#include "tests/fakes/nccl/communicator.h"

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <utility>

#include <unistd.h>

#include "base/format.h"
#include "tests/fakes/nccl/cuda_side.h"

namespace pliant::fake_nccl {
namespace {

constexpr std::chrono::microseconds kLook(50);
// NCCL's own takes half a second.
constexpr std::chrono::milliseconds kFreeing(60);

std::string Text(const char* name) {
  const char* const text = std::getenv(name);
  return text == nullptr ? "" : text;
}

}  // namespace

Faults Faults::FromEnvironment() {
  Faults faults;
  if (const std::string seed = Text("FAKE_NCCL_SEED"); !seed.empty())
    faults.seed = std::strtoull(seed.c_str(), nullptr, 10);
  faults.dies_in = Text("FAKE_NCCL_DIES");
  faults.dies_at = std::atoi(Text("FAKE_NCCL_DIES_AT").c_str());
  faults.abort_hangs = Text("FAKE_NCCL_ABORT") == "hangs";
  faults.creation_fails = Text("FAKE_NCCL_CREATION") == "fails";
  return faults;
}

void MayDie(const Faults& faults, const char* state) {
  static std::atomic<int> times = 0;
  if (faults.dies_in == state && times++ == faults.dies_at) ::kill(::getpid(), SIGKILL);
}

Communicator::Communicator(std::string name, int rank, int world_size, Faults faults)
    : name_(std::move(name)), rank_(rank), world_size_(world_size), faults_(std::move(faults)) {
  launches_ = std::jthread([this] { RunLaunches(); });
  thread_ = std::jthread([this] { Run(); });
}

void Communicator::Pause() const {
  std::this_thread::sleep_for(std::chrono::microseconds(faults_.seed * 7919 % 700));
}

// The loss of a peer is an error, or everything just stops: both happen.
void Communicator::Lose() {
  if (faults_.seed % 2 == 0) state_ = kRemoteError;
}

int Communicator::Launch(std::vector<Operation> operations) {
  if (state_ != kSuccess && state_ != kInProgress) return state_;
  if (state_ == kInProgress) {
    Report(Format("a group of rank {} while its communicator was not ready", rank_));
    return kInvalidArgument;
  }
  MayDie(faults_, groups_++ == 0 ? "warming" : "round");
  int ready = kSuccess;  // unless a rank was lost just now
  state_.compare_exchange_strong(ready, kInProgress);
  {
    const std::lock_guard lock(mutex_);
    launched_.push_back(std::move(operations));
  }
  changed_.notify_all();
  return kInProgress;
}

template <typename Item>
std::optional<Item> Communicator::Next(std::deque<Item>& items) {
  std::unique_lock lock(mutex_);
  while (items.empty() && !aborted()) changed_.wait_for(lock, kLook);
  if (aborted()) return std::nullopt;
  Item item = std::move(items.front());
  items.pop_front();
  return item;
}

void Communicator::RunLaunches() {
  while (auto operations = Next(launched_)) {
    Pause();
    auto job = std::make_shared<Job>();
    job->operations = *std::move(operations);
    const bool enqueued = Enqueue(job);
    {
      const std::lock_guard lock(mutex_);
      if (enqueued) jobs_.push_back(job);
      to_carry_.push_back(job);
    }
    int in_progress = kInProgress;  // unless it has failed meanwhile
    state_.compare_exchange_strong(in_progress, enqueued ? kSuccess : kUnhandledCudaError);
  }
}

void Communicator::Run() {
  Links links(name_, rank_, world_size_);
  MayDie(faults_, "creating");
  Pause();
  if (faults_.creation_fails) {
    state_ = kInternalError;
    return;
  }
  if (links.Connect([this] { return aborted(); }) != Links::Outcome::kDone) return Lose();
  Pause();
  state_ = kSuccess;
  while (const auto job = Next(to_carry_)) {
    for (auto ready = Job::State::kHasTurn;
         !(*job)->state.compare_exchange_strong(ready, Job::State::kCarried);
         ready = Job::State::kHasTurn) {
      if (aborted()) return;
      std::this_thread::sleep_for(kLook);
    }
    const auto outcome = Carry(links, **job);
    (*job)->state = outcome == Links::Outcome::kDone ? Job::State::kDone : Job::State::kFailed;
    switch (outcome) {
      case Links::Outcome::kDone:
        break;
      case Links::Outcome::kStopped:
        return;
      case Links::Outcome::kPeerLost:
        return Lose();
      case Links::Outcome::kMismatch:
        Report(links.mismatch());
        state_ = kInternalError;
        return;
    }
  }
}

Links::Outcome Communicator::Carry(Links& links, const Job& job) {
  const auto stopped = [this] { return aborted(); };
  std::vector<Transfer> transfers;
  for (const Operation& operation : job.operations) {
    if (operation.kind == Operation::Kind::kAllReduce) continue;
    const bool sends = operation.kind == Operation::Kind::kSend;
    transfers.push_back({.peer = operation.peer,
                         .memory = OnHost(sends ? operation.from : operation.to, operation.bytes),
                         .bytes = operation.bytes,
                         .sends = sends});
  }
  if (const auto outcome = links.Carry(transfers, stopped); outcome != Links::Outcome::kDone)
    return outcome;
  for (const Operation& operation : job.operations) {
    if (operation.kind != Operation::Kind::kAllReduce) continue;
    std::byte* const own = OnHost(operation.from, operation.bytes);
    std::vector<std::vector<float>> of_rank;
    std::vector<Transfer> all;
    for (int rank = 0; rank < world_size_; ++rank) {
      auto& values = of_rank.emplace_back(operation.bytes / sizeof(float));
      std::memcpy(values.data(), own, operation.bytes);
      if (rank == rank_) continue;
      all.push_back({.peer = rank, .memory = own, .bytes = operation.bytes, .sends = true});
      all.push_back({.peer = rank,
                     .memory = reinterpret_cast<std::byte*>(values.data()),
                     .bytes = operation.bytes});
    }
    if (const auto outcome = links.Carry(all, stopped); outcome != Links::Outcome::kDone)
      return outcome;
    // All ranks add in the same order, which changes from call to call.
    std::ranges::rotate(of_rank,
                        of_rank.begin() + static_cast<std::ptrdiff_t>(sums_++) % world_size_);
    std::vector<float> sum = of_rank.front();
    for (std::size_t rank = 1; rank < of_rank.size(); ++rank)
      for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += of_rank[rank][i];
    std::memcpy(OnHost(operation.to, operation.bytes), sum.data(), operation.bytes);
  }
  return Links::Outcome::kDone;
}

bool Communicator::Pass(Job& job, bool aborted) {
  auto state = Job::State::kQueued;
  job.state.compare_exchange_strong(state, Job::State::kHasTurn);
  state = job.state;
  if (state == Job::State::kPassed) return true;  // a stream may look again
  const bool ends = state == Job::State::kDone ||
                    (aborted && (state == Job::State::kHasTurn || state == Job::State::kFailed));
  return ends && job.state.compare_exchange_strong(state, Job::State::kPassed);
}

bool Communicator::Enqueue(const std::shared_ptr<Job>& job) const {
  fake_cuda::Exchange exchange{.name = "NCCL's operations", .accesses = {}, .over = nullptr};
  for (const Operation& operation : job->operations) {
    if (operation.kind != Operation::Kind::kReceive)
      exchange.accesses.push_back({.begin = operation.from, .bytes = operation.bytes});
    if (operation.kind != Operation::Kind::kSend)
      exchange.accesses.push_back(
          {.begin = operation.to, .bytes = operation.bytes, .writes = true});
  }
  // Kernels poll whether they are aborted.
  exchange.over = [job, aborted = aborted_] { return Pass(*job, *aborted); };
  return EnqueueOn(job->operations.front().stream, exchange);
}

// Waits until its streams have passed what they have of it, even behind work of others.
void Communicator::Abort() {
  MayDie(faults_, "aborting");
  *aborted_ = true;
  changed_.notify_all();
  thread_.join();
  launches_.join();
  while (faults_.abort_hangs) std::this_thread::sleep_for(std::chrono::seconds(1));
  for (const std::shared_ptr<Job>& job : jobs_)
    while (job->state != Job::State::kPassed && Progress()) std::this_thread::sleep_for(kLook);
  std::this_thread::sleep_for(kFreeing);
}

}  // namespace pliant::fake_nccl
