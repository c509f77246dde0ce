#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>

#include "base/result.h"
#include "trainer/collective/gradient_rounds.h"
#include "trainer/collective/memory_source.h"
#include "trainer/collective/reduction.h"
#include "trainer/collective/reduction_plan.h"
#include "trainer/protocol/team.h"
#include "trainer/runtime/compute.h"

namespace pliant {

// The way of a step's gradients from rank to rank.
enum class StepCarrier : std::uint8_t {
  kNone,    // one rank computes all shards
  kFrames,  // from host memory, in which the sum stands afterwards
  kRounds,  // from device to device
};

// The gradients of one step on their way from the nodes of all ranks to the mean over all samples.
// For the event loop.
class GradientExchange {
 public:
  virtual ~GradientExchange() = default;

  // Sets what the computation of this rank's part needs to know.
  virtual void Prepare(TickWork& work) const = 0;
  // A whole node of this rank, in host memory, which was kept from an aborted tick.
  virtual void AddKept(const HeldNode& node) = 0;
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
  virtual bool in_rounds() const { return false; }
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

  void Prepare(TickWork& work) const override { work.buckets = buckets_; }
  void AddKept(const HeldNode& node) override { reduction_.AddLocal(node); }
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
  void AddKept(const HeldNode& node) override;
  void Add(const HeldNode& node, std::uint32_t bucket) override;
  void OnComputed(const FloatBuffer& mean) override;
  void OnExchanged() override { exchanged_ = true; }
  Status OnFrame(int rank, const Frame& frame) override;
  MutableBytes ReceiveBufferFor(int, const FrameHeader&, std::size_t) const override { return {}; }
  bool over() const override { return mean_ && exchanged_; }
  MeanGradient mean() const override { return {.values = mean_, .on_device = true}; }
  bool Drop() override;
  bool in_rounds() const override { return step_.rounds != nullptr; }

 private:
  DeviceStep step_;
  BucketSizes buckets_;
  FloatBuffer mean_;
  bool exchanged_ = false;  // or there is nobody to exchange with
};

// The exchanges of a learner, one for each step. Lives as long as the learner, because their
// buffers are used again.
class GradientExchanges {
 public:
  struct Options {
    std::size_t elements = 0;  // of the gradient
    bool on_device = false;    // Compute::keeps_means
    bool all_reduce = false;   // as in GradientRounds::Sum
    // The cuts of the gradient: equal on all learners.
    BucketSizes buckets = Reduction::kBucketSizes;
    BucketSizes buckets_of_rounds = GradientRounds::kBucketSizes;
  };
  struct Step {
    MembershipId membership;
    Tick tick = 0;
    int self = 0;  // rank
    std::uint64_t samples = 0;
  };

  GradientExchanges(const Options& options, Reduction::SendFrame send, MemorySource& memory)
      : options_(options), frames_(options.elements, std::move(send), memory) {}

  // Begins the exchange of the team's step, which lives until the next one begins.
  GradientExchange& Begin(StepCarrier carrier, const Team& team, const Step& step);

 private:
  const Options options_;
  LastReductionPlan plans_;
  FrameExchange frames_;
  DeviceExchange device_;
};

}  // namespace pliant
