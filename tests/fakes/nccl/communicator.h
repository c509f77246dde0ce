#pragma once

#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "tests/fakes/nccl/links.h"

namespace pliant::fake_nccl {

// ncclResult_t.
enum Result {
  kSuccess = 0,
  kUnhandledCudaError = 1,
  kSystemError = 2,
  kInternalError = 3,
  kInvalidArgument = 4,
  kInvalidUsage = 5,
  kRemoteError = 6,
  kInProgress = 7,
};

// A call of ncclSend, ncclRecv or ncclAllReduce.
struct Operation {
  enum class Kind { kSend, kReceive, kAllReduce };
  Kind kind = Kind::kSend;
  int peer = 0;
  std::uint64_t from = 0;  // device memory
  std::uint64_t to = 0;
  std::size_t bytes = 0;
  void* stream = nullptr;
};

// How it misbehaves, from the environment. FAKE_NCCL_SEED decides whether the loss of a peer is an
// error or a hang, and how long things take.
struct Faults {
  static Faults FromEnvironment();

  std::uint64_t seed = 1;
  std::string dies_in;          // FAKE_NCCL_DIES: creating, warming, round, aborting
  int dies_at = 0;              // FAKE_NCCL_DIES_AT: the how manieth time of the process, from 0
  bool abort_hangs = false;     // FAKE_NCCL_ABORT=hangs
  bool creation_fails = false;  // FAKE_NCCL_CREATION=fails
};

// Ends the process as a crash does, if the faults say that it dies here.
void MayDie(const Faults& faults, const char* state);

// One rank of a communicator that does not block. Its thread makes the connections and carries the
// bytes, as NCCL's threads and kernels do together.
class Communicator {
 public:
  Communicator(std::string name, int rank, int world_size, Faults faults);
  ~Communicator() = default;
  Communicator(const Communicator&) = delete;
  Communicator& operator=(const Communicator&) = delete;

  int state() const { return state_; }
  int world_size() const { return world_size_; }
  int rank() const { return rank_; }

  // Queues a group's operations on their stream, as one. Returns at once.
  int Launch(std::vector<Operation> operations);
  // Ends it. Waits for what its streams have of it.
  void Abort();

 private:
  struct Job {
    // It uses the operations' memory only while it is carried; its stream passes it only when it is
    // not. A kernel that is aborted, too, has ended before its stream gets on.
    enum class State { kQueued, kHasTurn, kCarried, kDone, kFailed, kPassed };

    std::vector<Operation> operations;
    std::atomic<State> state = State::kQueued;
  };
  // The job's stream is at it. True: it gets on.
  static bool Pass(Job& job, bool aborted);

  // The thread of the connections and the bytes, and that of the launches.
  void Run();
  void RunLaunches();
  Links::Outcome Carry(Links& links, const Job& job);
  bool Enqueue(const std::shared_ptr<Job>& job) const;
  void Lose();
  void Pause() const;
  bool aborted() const { return *aborted_; }
  // Waits for the next one; nullopt: aborted.
  template <typename Item>
  std::optional<Item> Next(std::deque<Item>& items);

  const std::string name_;
  const int rank_;
  const int world_size_;
  const Faults faults_;
  std::atomic<int> state_ = kInProgress;
  const std::shared_ptr<std::atomic<bool>> aborted_ = std::make_shared<std::atomic<bool>>(false);
  std::uint64_t groups_ = 0;
  std::uint64_t sums_ = 0;

  std::mutex mutex_;
  std::condition_variable changed_;
  // Guarded by mutex_.
  std::deque<std::vector<Operation>> launched_;
  std::deque<std::shared_ptr<Job>> to_carry_;
  std::vector<std::shared_ptr<Job>> jobs_;

  std::jthread launches_;
  std::jthread thread_;  // last: they use the rest
};

}  // namespace pliant::fake_nccl
