#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <vector>

#include "base/result.h"
#include "trainer/collective/buckets.h"
#include "trainer/collective/buffer_pool.h"
#include "trainer/collective/byte_pool.h"
#include "trainer/collective/gradient_accumulator.h"
#include "trainer/collective/gradient_device.h"
#include "trainer/collective/gradient_rounds.h"
#include "trainer/runtime/compute.h"

namespace pliant {

// The part of a tick that a device computes: queues copies of its results to the host behind the
// work that makes them, and completes the tick's output when they are there. Lives until then.
//
// Complete is called on any thread; all else on the program's thread.
class DeviceTick {
 public:
  struct Memory {
    GradientDevice& device;
    BytePool& pinned;   // of the host
    BufferPool& sums;   // of the host: copies of blocks' sums
    BufferPool& means;  // of the device
  };

  // `work` outlives it.
  DeviceTick(Memory memory, const TickWork& work, const GradientCells& cells);

  GradientDevice& device() { return memory_.device; }

  // Memory for the sums of loss and correct of the shard with this index in TickWork::tasks; the
  // index behind the last one is that of TickWork::other_checked.
  std::span<double> SumsOf(std::size_t task) { return sums_.subspan(2 * task, 2); }
  // The device writes them.
  void SumsFollow(std::size_t task) { follow_[task] = true; }
  // Measures this shard's gradient, which is final.
  void Measure(std::size_t task, std::span<const float> gradient);

  // The shard of the spot check. Its gradient and buffers are final, and stay until Complete.
  void Check(std::size_t task, std::span<const float> gradient, std::span<const std::byte> buffers,
             const ShardSums& sums);

  // The tick begins: its rounds, if it has some.
  void Begin();
  // A bucket of a block's sum is final. `on_part` is called on another thread when its copy is
  // there; in rounds, not at all.
  void HandOut(const HeldNode& node, std::uint32_t bucket, ElementRange range,
               const std::function<void(NodePart)>& on_part);
  // Queues what is left to do for the output. `whole`: all tasks were done.
  void End(const GradientAccumulator& accumulator, bool whole, TickOutput& output);
  // nullptr: the tick has none. Others must do their part until they are over.
  GradientRounds* rounds() const { return begun_; }
  // The device is done.
  void Complete(TickOutput& output) const;

  // Queues copies of all sums of `accumulator` to memory of the host: the nodes of the output.
  static void CopyNodes(const GradientAccumulator& accumulator, const Memory& memory,
                        std::vector<HeldNode>& nodes);

 private:
  struct Checked {
    std::size_t task = 0;
    std::span<const std::byte> buffers;
    ShardSums sums;
  };

  // The sums of a shard, of which the device may have written some.
  ShardSums WithThatFollow(std::size_t task, ShardSums sums) const;

  Memory memory_;
  const TickWork& work_;
  const std::size_t lanes_of_gradient_;
  MutableBytes shard_memory_;
  std::span<double> sums_;
  std::vector<bool> follow_;
  std::optional<Checked> checked_;
  std::uint64_t* checksum_ = nullptr;        // of its gradient; pinned
  std::span<double> lanes_;                  // of each task's gradient, if it is measured
  std::map<NodeIndex, FloatBuffer> copies_;  // of blocks' sums
  GradientRounds* begun_ = nullptr;
  FloatBuffer mean_;              // of the rounds
  std::vector<HeldNode> blocks_;  // in rounds: those of which some bucket is final
};

}  // namespace pliant
