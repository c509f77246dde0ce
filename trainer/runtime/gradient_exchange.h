#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>

#include "base/result.h"
#include "trainer/collective/memory_source.h"
#include "trainer/collective/reduction.h"
#include "trainer/runtime/compute.h"

namespace pliant {

// The gradients of one step on their way from the nodes of all ranks to the mean over all samples.
// For the event loop; one lives as long as the learner, because its buffers are used again.
class GradientExchange {
 public:
  virtual ~GradientExchange() = default;

  // Sets what the computation of this rank's part needs to know.
  virtual void Prepare(TickWork& work) const = 0;
  // A finished bucket of a node of this rank, in host memory.
  virtual void Add(const HeldNode& node, std::uint32_t bucket) = 0;
  // This rank's part is over. `mean`: TickOutput::mean.
  virtual void OnComputed(const FloatBuffer& mean) = 0;
  // The devices have exchanged their gradients.
  virtual void OnExchanged() = 0;
  // A frame of the tick that carries a gradient. Errors are those of Reduction::OnFrame.
  virtual Status OnFrame(int rank, const Frame& frame) = 0;
  virtual MutableBytes ReceiveBufferFor(int rank, const FrameHeader& header,
                                        std::size_t bytes) const = 0;

  virtual bool over() const = 0;
  // Complete when over().
  virtual MeanGradient mean() const = 0;
  // The mean is no longer needed. Returns whether it is on the device, which then can still give
  // out this rank's nodes (Compute::AbortTick).
  virtual bool Drop() = 0;
};

// Over frames, in host memory. Alone, too: then no frame is sent.
class FrameExchange final : public GradientExchange {
 public:
  FrameExchange(std::size_t elements, Reduction::SendFrame send, MemorySource& memory)
      : reduction_(elements, std::move(send), memory) {}

  // From here on it takes frames.
  void Begin(const Reduction::TickInfo& tick) {
    buckets_ = tick.buckets;
    reduction_.Begin(tick);
  }
  // A whole node, which was kept from an aborted tick.
  void AddKept(const HeldNode& node) { reduction_.AddLocal(node); }
  std::span<const float> root() const { return reduction_.root(); }

  void Prepare(TickWork& work) const override { work.buckets = buckets_; }
  void Add(const HeldNode& node, std::uint32_t bucket) override {
    reduction_.AddLocal(node, bucket);
  }
  void OnComputed(const FloatBuffer&) override {}
  void OnExchanged() override {}
  Status OnFrame(int rank, const Frame& frame) override { return reduction_.OnFrame(rank, frame); }
  MutableBytes ReceiveBufferFor(int rank, const FrameHeader& header,
                                std::size_t bytes) const override {
    return reduction_.ReceiveBufferFor(rank, header, bytes);
  }
  bool over() const override { return reduction_.done(); }
  MeanGradient mean() const override { return {.values = reduction_.shared_root()}; }
  bool Drop() override { return false; }

 private:
  Reduction reduction_;
  BucketSizes buckets_;
};

// On the device: this rank computes all shards itself, or the devices of all ranks exchange their
// gradients in rounds.
class DeviceExchange final : public GradientExchange {
 public:
  void Begin(DeviceStep step, const BucketSizes& buckets);

  void Prepare(TickWork& work) const override;
  void Add(const HeldNode& node, std::uint32_t bucket) override;
  void OnComputed(const FloatBuffer& mean) override;
  void OnExchanged() override { exchanged_ = true; }
  Status OnFrame(int rank, const Frame& frame) override;
  MutableBytes ReceiveBufferFor(int, const FrameHeader&, std::size_t) const override { return {}; }
  bool over() const override { return mean_ && exchanged_; }
  MeanGradient mean() const override { return {.values = mean_, .on_device = true}; }
  bool Drop() override;

 private:
  DeviceStep step_;
  BucketSizes buckets_;
  FloatBuffer mean_;
  bool exchanged_ = false;  // or there is nobody to exchange with
};

}  // namespace pliant
