#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <thread>

#include "base/result.h"
#include "trainer/collective/communicators.h"
#include "trainer/cuda/cuda_events.h"
#include "trainer/cuda/cuda_memory.h"
#include "trainer/cuda/nccl_functions.h"

namespace pliant {

// One communicator of NCCL after the other, and the stream on which they work. One thread makes all
// calls, with the context current. It never waits in a call of NCCL: a communicator that does not
// block is polled, so that it can be aborted at any time. What is queued on the stream waits
// neither for the program's stream, whose work may take long, nor for anything that another rank
// must do outside of NCCL.
class NcclCommunicator {
 public:
  // A point in time after which waiting is an error; none: no limit.
  using Deadline = std::optional<std::chrono::steady_clock::time_point>;

  // `interrupted` is asked while a call waits: if it holds, the call fails with kCancelled.
  NcclCommunicator(std::shared_ptr<CudaMemory> memory, const NcclFunctions& functions,
                   std::function<bool()> interrupted);
  ~NcclCommunicator();
  NcclCommunicator(const NcclCommunicator&) = delete;
  NcclCommunicator& operator=(const NcclCommunicator&) = delete;
  Status Prepare();  // first: makes the stream

  // Needs no communicator.
  Result<CommunicatorId> NewId();
  // Creates a communicator with all ranks of the seat, and has each two of them connect. There is
  // none yet.
  Status Create(const Communicators::Seat& seat, const Deadline& deadline);
  bool exists() const { return communicator_ != nullptr; }
  // Ends the communicator, if there is one. Returns when nothing that was queued for it uses memory
  // any longer. The rest, for which NCCL takes half a second, is left to a thread.
  void End();
  void AwaitEnd();  // of that thread

  // Device memory for what other ranks send, at least so large. Its contents may change.
  Status Reserve(std::size_t bytes);
  std::byte* scratch() const { return scratch_.get(); }

  CudaStream stream() const { return stream_; }
  // Queues the operations that `queue` names by Send, Receive and Add, as one group.
  Status Group(const Deadline& deadline, const std::function<Status()>& queue);
  Status Send(std::span<const float> values, int rank);
  Status Receive(std::span<float> values, int rank);
  Status Add(std::span<float> values);  // the sum over all ranks, in their place
  // Waits until all that the stream has now is complete.
  Status AwaitStream(const Deadline& deadline, const char* what);
  // Calls `over` until it has a value.
  Status Poll(const Deadline& deadline, const char* what,
              const std::function<std::optional<Status>()>& over) const;
  Status Interrupted(const char* what) const;  // kCancelled if it is

 private:
  Status Check(int result, const char* what) const;
  Status PollState(const Deadline& deadline, const char* what);
  Status Warm(const Communicators::Seat& seat, const Deadline& deadline);

  const std::shared_ptr<CudaMemory> memory_;
  const std::shared_ptr<const CudaDriver> driver_;
  const NcclFunctions nccl_;
  const std::function<bool()> interrupted_;
  CudaStream stream_ = nullptr;
  CudaEvent reached_ = nullptr;
  NcclComm communicator_ = nullptr;
  bool launching_ = false;  // NCCL may still queue what it was asked
  std::jthread ending_;     // of an earlier communicator
  std::shared_ptr<std::byte> scratch_;
  std::size_t scratch_bytes_ = 0;
};

}  // namespace pliant
