#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <span>
#include <vector>

#include "trainer/collective/buffer_pool.h"
#include "trainer/collective/gradient_device.h"
#include "trainer/runtime/tick_side.h"

namespace pliant {

// A tick whose gradients are on a device. It queues copies of the results to the host behind the
// work that makes them, and completes the tick's output when they are there. Lives until then.
class DeviceTick final : public TickSide {
 public:
  struct Memory {
    GradientDevice& device;
    BytePool& pinned;   // of the host
    BufferPool& sums;   // of the host: copies of blocks' sums
    BufferPool& means;  // of the device
  };

  // All of these outlive it. A part is handed out when its copy is on the host; in rounds, not at
  // all.
  DeviceTick(Memory memory, GradientAccumulator& accumulator, const TickWork& work,
             TickControl& control, OnPart on_part);

  void Begin() override;
  MemorySource& memory() override { return memory_.device.memory(); }
  MutableBytes TakeBuffers(std::size_t bytes) override { return memory_.pinned.Take(bytes); }
  // The last bucket of a step that nobody else needs is known when the step is whole.
  bool hands_out() const override { return !work_.device_step || work_.device_step->rounds; }
  bool needs_whole_leaves() const override { return work_.measure; }
  void Offer(std::size_t task, ShardWork& work) override;
  void OnLeaf(std::size_t task, std::span<const float> leaf) override;
  void HandOut(const HeldNode& node, std::uint32_t bucket) override;
  void Check(std::size_t task, std::span<const float> gradient, std::span<const std::byte> buffers,
             const ShardSums& sums, TickOutput& output) override;
  void OnFinished(std::size_t task, ShardResult& result) override;
  void End(bool whole, TickOutput& output) override;
  GradientRounds* rounds() const override { return begun_; }
  void Complete(TickOutput& output) const override;

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
  GradientAccumulator& accumulator_;
  const TickWork& work_;
  TickControl& control_;
  const OnPart on_part_;
  const std::size_t lanes_of_gradient_;
  MutableBytes shard_memory_;
  std::span<double> sums_;
  std::deque<bool> follow_;  // by task: whether the device writes its sums
  std::optional<Checked> checked_;
  std::uint64_t* checksum_ = nullptr;        // of its gradient; pinned
  std::span<double> lanes_;                  // of each task's gradient, if it is measured
  std::map<NodeIndex, FloatBuffer> copies_;  // of blocks' sums
  GradientRounds* begun_ = nullptr;
  FloatBuffer mean_;              // of the rounds
  std::vector<HeldNode> blocks_;  // in rounds: those of which some bucket is final
};

}  // namespace pliant
