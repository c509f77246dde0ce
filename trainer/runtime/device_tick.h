#pragma once

#include <cstddef>
#include <cstdint>
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
//
// By itself it is a tick whose gradients travel in frames: a finished bucket is handed out when its
// copy is on the host.
class DeviceTick : public TickSide {
 public:
  struct Memory {
    GradientDevice& device;
    BytePool& pinned;   // of the host
    BufferPool& sums;   // of the host: copies of blocks' sums
    BufferPool& means;  // of the device
  };

  // All of these outlive it.
  DeviceTick(Memory memory, GradientAccumulator& accumulator, const TickWork& work,
             TickControl& control, OnPart on_part);

  void Begin() override {}
  MemorySource& memory() override { return memory_.device.memory(); }
  MutableBytes TakeBuffers(std::size_t bytes) override { return memory_.pinned.Take(bytes); }
  bool hands_out() const override { return true; }
  bool needs_whole_leaves() const override { return work_.measure; }
  void Offer(std::size_t task, ShardWork& work) override;
  void OnLeaf(std::size_t task, std::span<const float> leaf) override;
  void HandOut(const HeldNode& node, std::uint32_t bucket) override;
  void Check(std::size_t task, std::span<const float> gradient, std::span<const std::byte> buffers,
             const ShardSums& sums, TickOutput& output) override;
  void OnFinished(std::size_t task, ShardResult& result) override;
  void End(bool whole, TickOutput& output) override;
  void Complete(TickOutput& output) const override;

  using Copies = std::map<NodeIndex, FloatBuffer>;  // of blocks' sums
  // Queues copies of all sums of `accumulator` to memory of the host: the nodes of the output.
  // `copies`: those that are queued already.
  static void CopyNodes(const GradientAccumulator& accumulator, const Memory& memory,
                        std::vector<HeldNode>& nodes, Copies copies = {});

 protected:
  const Memory& to() const { return memory_; }
  GradientAccumulator& accumulator() const { return accumulator_; }
  const TickWork& work() const { return work_; }

 private:
  struct Checked {
    std::size_t task = 0;
    std::span<const std::byte> buffers;
    ShardSums sums;
  };

  static constexpr std::size_t kMaxSums = 2 + kMaxNamedSums;  // of ShardWork::sums

  // The sums of a shard, of which the device may have written some.
  ShardSums WithThatFollow(std::size_t task, ShardSums sums) const;

  const Memory memory_;
  GradientAccumulator& accumulator_;
  const TickWork& work_;
  TickControl& control_;
  const OnPart on_part_;
  const std::size_t lanes_of_gradient_;
  MutableBytes shard_memory_;
  std::span<double> sums_;           // kMaxSums of each task
  std::vector<std::size_t> follow_;  // by task: the number of its sums that the device writes
  std::optional<Checked> checked_;
  std::uint64_t* checksum_ = nullptr;  // of its gradient; pinned
  std::span<double> lanes_;            // of each task's gradient, if it is measured
  Copies copies_;
};

// A step of which this learner computes all shards: the mean is made where the sums are.
class WholeDeviceTick final : public DeviceTick {
 public:
  using DeviceTick::DeviceTick;

  // Nobody else needs a bucket: it is known when the step is whole.
  bool hands_out() const override { return false; }
  void End(bool whole, TickOutput& output) override;
};

// A step whose gradients the devices of all ranks exchange in rounds.
class RoundsTick final : public DeviceTick {
 public:
  using DeviceTick::DeviceTick;

  void Begin() override;
  void HandOut(const HeldNode& node, std::uint32_t bucket) override;
  void End(bool whole, TickOutput& output) override;
  GradientRounds* rounds() const override { return begun_; }
  void AbortExchange() const override;

 private:
  GradientRounds* begun_ = nullptr;
  FloatBuffer mean_;
  std::size_t blocks_of_step_ = 0;  // of this rank
  std::vector<HeldNode> blocks_;    // those of which some bucket is final
};

}  // namespace pliant
