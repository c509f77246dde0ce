#pragma once

#include "trainer/runtime/tick_side.h"

namespace pliant {

// A tick whose gradients are in host memory.
class HostTick final : public TickSide {
 public:
  // All of these outlive it.
  HostTick(GradientAccumulator& accumulator, BytePool& buffers, const TickWork& work,
           TickControl& control, OnPart on_part);

  void Begin() override {}
  MemorySource& memory() override { return HeapMemory(); }
  MutableBytes TakeBuffers(std::size_t bytes) override { return buffers_.Take(bytes); }
  bool hands_out() const override { return true; }
  bool needs_whole_leaves() const override { return false; }
  void Offer(std::size_t, ShardWork&) override {}
  void OnLeaf(std::size_t, std::span<const float>) override {}
  void HandOut(const HeldNode& node, std::uint32_t bucket) override;
  void Check(std::size_t task, std::span<const float> gradient, std::span<const std::byte> buffers,
             const ShardSums& sums, TickOutput& output) override;
  void OnFinished(std::size_t task, ShardResult& result) override;
  void End(bool whole, TickOutput& output) override;
  void Complete(TickOutput&) const override {}

 private:
  GradientAccumulator& accumulator_;
  BytePool& buffers_;
  const TickWork& work_;
  TickControl& control_;
  const OnPart on_part_;
};

}  // namespace pliant
