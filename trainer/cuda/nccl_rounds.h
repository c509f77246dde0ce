#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <stop_token>
#include <thread>

#include "base/event_loop.h"
#include "base/result.h"
#include "trainer/collective/gradient_rounds.h"
#include "trainer/cuda/cuda_events.h"
#include "trainer/cuda/cuda_kernels.h"
#include "trainer/cuda/cuda_memory.h"
#include "trainer/cuda/nccl_communicator.h"
#include "trainer/cuda/nccl_functions.h"
#include "trainer/cuda/nccl_sum.h"

namespace pliant {

// Rounds over NCCL: a thread that makes all of its calls but the abort, in the order in which they
// are asked for.
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
  NcclRounds(std::shared_ptr<CudaMemory> memory, const Options& options,
             const NcclFunctions& functions);
  Status Prepare(const NcclLibrary& library);
  bool interrupted() const { return aborts_ > 0 || stopping_; }
  // Has NCCL's thread do it.
  void Do(std::function<void()> command);
  std::shared_ptr<NcclSum> sum();
  void Run(const std::stop_token& stop);  // NCCL's thread

  const std::shared_ptr<CudaMemory> memory_;
  const Options options_;
  CommunicatorPartner partner_;

  std::atomic<int> aborts_ = 0;  // asked for and not done
  std::atomic<bool> stopping_ = false;

  // The driver's objects end while its context is current.
  std::unique_ptr<CudaEvents> events_;
  std::unique_ptr<CudaKernels> kernels_;
  std::unique_ptr<NcclCommunicator> communicator_;  // NCCL's thread only

  std::mutex mutex_;
  std::condition_variable_any changed_;
  // Guarded by mutex_.
  std::deque<std::function<void()>> commands_;
  std::shared_ptr<NcclSum> sum_;  // the last one; nullptr: none was begun

  std::jthread thread_;  // last: it uses the rest
};

}  // namespace pliant
