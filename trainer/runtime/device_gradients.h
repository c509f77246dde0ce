#pragma once

#include "trainer/collective/buffer_pool.h"
#include "trainer/collective/gradient_device.h"
#include "trainer/collective/memory_source.h"
#include "trainer/runtime/device_tick.h"
#include "trainer/runtime/gradient_place.h"

namespace pliant {

// Gradients on a device, with the memory that each tick uses again.
class DeviceGradients final : public GradientPlace {
 public:
  // `accumulator` sums on `device`. Sums that leave the device are copied to memory of `sums`. Both
  // outlive this.
  DeviceGradients(GradientAccumulator accumulator, GradientDevice& device, MemorySource& sums);

  bool keeps_means() const override { return true; }
  Communicators* communicators() override { return device_.rounds(); }
  std::unique_ptr<TickSide> NewTick(const TickWork& work, TickControl& control,
                                    TickSide::OnPart on_part) override;
  void CopyNodes(std::vector<HeldNode>& nodes) override;
  void Then(std::function<void(const Status&)> done) override { device_.Then(std::move(done)); }
  void Begin(RunningCommit& commit) override;
  void End(std::shared_ptr<RunningCommit> commit, std::function<void(const Status&)> done) override;
  bool Drain() override { return device_.Drain(); }

 private:
  DeviceTick::Memory memory() {
    return {.device = device_, .pinned = pinned_, .sums = sums_, .means = means_};
  }

  GradientDevice& device_;
  BytePool pinned_;
  BufferPool sums_;
  BufferPool means_;
};

}  // namespace pliant
