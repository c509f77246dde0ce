#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <stop_token>
#include <thread>
#include <vector>

#include "base/event_loop.h"
#include "base/result.h"
#include "trainer/collective/gradient_rounds.h"
#include "trainer/cuda/cuda_kernels.h"
#include "trainer/cuda/cuda_memory.h"
#include "trainer/cuda/nccl_functions.h"

namespace pliant {

// Rounds over NCCL, which moves the bytes; our kernels add them. All calls of NCCL but the abort
// are made by one thread, which never waits in one: a communicator that does not block is polled,
// so that it can be aborted at any time. It works on a stream of its own. What it queues there
// waits neither for the program's stream, whose work may take long, nor for anything that another
// rank must do outside of NCCL.
class NcclRounds final : public GradientRounds {
 public:
  struct Options {
    Duration max_creation = std::chrono::minutes(3);
    // How long a rank may take for a shard of the training; one that takes longer ends by itself.
    // This rank waits for the others a little longer than their shards may take. Zero: no limit.
    Duration max_shard{};
  };

  // The program has named its stream. kUnavailable: NCCL or the kernels cannot be used, or NCCL's
  // variables say that communicators are to block; the message is for people.
  static Result<std::unique_ptr<NcclRounds>> Make(std::shared_ptr<CudaMemory> memory,
                                                  const Options& options);
  ~NcclRounds() override;
  NcclRounds(const NcclRounds&) = delete;
  NcclRounds& operator=(const NcclRounds&) = delete;

  // ---- Communicators ----
  CommunicatorPartner partner() const override { return partner_; }
  void NewId(std::function<void(Result<CommunicatorId>)> done) override;
  void Join(const Seat& seat, std::function<void(Status)> done) override;
  void Abort(std::function<void()> done) override;

  // ---- GradientRounds ----
  void Begin(Sum sum) override;
  void Add(std::span<const HeldNode> nodes, std::uint32_t bucket) override;
  void WhenOver(std::function<void(Status)> done) override;

 private:
  struct Running {
    explicit Running(Sum asked) : sum(std::move(asked)), ready(sum.buckets.count()) {}

    Sum sum;  // without its memory once it is over
    // Guarded by mutex_.
    std::vector<HeldNode> nodes;
    std::vector<CudaEvent> ready;  // by bucket; nullptr: not added yet
    Status queued;                 // of the program's side
    bool over = false;
    Status result;
    std::function<void(Status)> when_over;
  };
  using Deadline = std::optional<std::chrono::steady_clock::time_point>;

  NcclRounds(std::shared_ptr<CudaMemory> memory, const Options& options,
             const NcclFunctions& functions);
  Status Prepare(const NcclLibrary& library);
  void Do(std::function<void()> command);

  // ---- NCCL's thread ----
  void Run(const std::stop_token& stop);
  bool interrupted() const { return aborts_ > 0 || stopping_; }
  Status Check(int result, const char* what) const;
  // Calls `over` until it has a value, this is interrupted, or it is late.
  Status Poll(const Deadline& deadline, const char* what,
              const std::function<std::optional<Status>()>& over) const;
  // The communicator has done on the host what it was asked.
  Status PollCommunicator(const Deadline& deadline, const char* what);
  // All that the stream has now is complete.
  Status PollStream(const Deadline& deadline, const char* what) const;
  Status Create(const Seat& seat);
  Status Warm(const Seat& seat, const Deadline& deadline);
  // One group of operations.
  Status Group(const Deadline& deadline, const std::function<Status()>& operations);
  // Ends the communicator. Returns when nothing that was queued for it uses memory any longer. The
  // rest, which NCCL takes half a second for, is left to a thread.
  void End();
  void AwaitEnd();
  void Exchange(const std::shared_ptr<Running>& running);
  Status Rounds(Running& running);
  Status Reduce(Running& running);
  // The program's stream has the bucket ready.
  Status AwaitBucket(Running& running, std::uint32_t bucket);
  Status Round(const Running& running, std::size_t round, const Deadline& deadline);
  Status Carry(const Running& running, std::uint32_t bucket,
               const ReductionPlan::Addition& addition);
  Status Reserve(std::size_t bytes);
  float* PlaceOf(const Running& running, std::uint32_t bucket,
                 const ReductionPlan::Part& part) const;
  // From now on, after all of this rank's buckets are there.
  Deadline RoundsEnd(const ReductionPlan& plan) const;

  const std::shared_ptr<CudaMemory> memory_;
  const std::shared_ptr<const CudaDriver> driver_;
  const Options options_;
  const NcclFunctions nccl_;
  CommunicatorPartner partner_;
  std::unique_ptr<CudaKernels> kernels_;
  CudaStream stream_ = nullptr;
  CudaEvent reached_ = nullptr;

  // NCCL's thread only.
  NcclComm communicator_ = nullptr;
  bool launching_ = false;              // NCCL may still queue what it was asked
  std::jthread ending_;                 // of an earlier communicator
  std::shared_ptr<std::byte> scratch_;  // for parts that a plan holds
  std::size_t scratch_bytes_ = 0;
  std::size_t held_elements_ = 0;  // between two of them

  std::atomic<int> aborts_ = 0;  // asked for and not done
  std::atomic<bool> stopping_ = false;

  std::mutex mutex_;
  std::condition_variable_any changed_;
  // Guarded by mutex_.
  std::deque<std::function<void()>> commands_;
  std::shared_ptr<Running> running_;
  std::vector<CudaEvent> spare_;

  std::jthread thread_;  // last: it uses the rest
};

}  // namespace pliant
