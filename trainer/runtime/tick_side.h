#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>

#include "trainer/collective/byte_pool.h"
#include "trainer/collective/gradient_accumulator.h"
#include "trainer/collective/gradient_rounds.h"
#include "trainer/collective/memory_source.h"
#include "trainer/runtime/compute.h"
#include "trainer/runtime/operation.h"

namespace pliant {

// Shared between the thread that computes and others.
struct TickControl {
  std::atomic<bool> abandoned = false;
  std::atomic<std::size_t> done = 0;  // number of finished tasks
};

// The place of a tick's gradients: HostTick or DeviceTick. It hands out the parts of this learner,
// and writes the tick's output. Calls come from the
// program's thread, unless they say otherwise.
class TickSide {
 public:
  // Receives each finished bucket of a block, on any thread.
  using OnPart = std::function<void(NodePart)>;

  virtual ~TickSide() = default;

  // A tick of training begins.
  virtual void Begin() = 0;
  // For results that are no part of a sum. Throws std::bad_alloc if there is none left.
  virtual MemorySource& memory() = 0;
  // For the model's buffers, which the program writes on the host.
  virtual MutableBytes TakeBuffers(std::size_t bytes) = 0;
  // Whether finished buckets of a block are handed out.
  virtual bool hands_out() const = 0;
  // Whether a leaf must be whole before any of it is added to a sum.
  virtual bool needs_whole_leaves() const = 0;
  // Work on this index in TickWork::tasks; the index behind the last one is that of
  // TickWork::other_checked. Sets what the program may leave to this side.
  virtual void Offer(std::size_t task, ShardWork& work) = 0;
  // The leaf is whole, and is added to the sums only now.
  virtual void OnLeaf(std::size_t task, std::span<const float> leaf) = 0;
  virtual void HandOut(const HeldNode& node, std::uint32_t bucket) = 0;
  // The shard of the spot check. Its gradient and buffers are final, and stay until Complete.
  virtual void Check(std::size_t task, std::span<const float> gradient,
                     std::span<const std::byte> buffers, const ShardSums& sums,
                     TickOutput& output) = 0;
  virtual void OnFinished(std::size_t task, ShardResult& result) = 0;
  // Adds what is left to be added to the output. `whole`: all tasks were done.
  virtual void End(bool whole, TickOutput& output) = 0;
  // The exchange that was begun, or nullptr. It ends only when every rank has contributed.
  virtual GradientRounds* rounds() const { return nullptr; }
  // Ends the exchange, which may not have begun yet, with an error. Any thread.
  virtual void AbortExchange() const {}
  // Call it when all that was queued is done, on any thread: fills in the results.
  virtual void Complete(TickOutput& output) const = 0;
};

}  // namespace pliant
