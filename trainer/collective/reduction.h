#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "base/result.h"
#include "trainer/collective/buckets.h"
#include "trainer/collective/buffer_pool.h"
#include "trainer/collective/gradient_accumulator.h"
#include "trainer/collective/peer_transport.h"
#include "trainer/collective/reduction_plan.h"
#include "trainer/collective/tree_sum.h"

namespace pliant {

// Sums the gradient of one tick over all learners, without I/O: frames go in by OnFrame and out by
// a callback.
//
// It carries out a ReductionPlan: whenever a part of a bucket is there, whether computed, received
// or added up, it is sent to the ranks that need it, and added up where it is an input. Buckets
// travel independently: those that a backward pass finishes first are sent while it continues, and
// adding overlaps with receiving. Sums are out of place: inputs are never written, and stay valid
// for another try under another membership.
//
// Lives as long as the learner; buffers are reused in every tick. Runs on the event loop's thread.
class Reduction {
 public:
  using SendFrame = std::function<void(int rank, Frame frame)>;

  // 512 KiB: what a peer sent is still in a core's cache when it is added, and while one bucket is
  // added the next one travels.
  static constexpr BucketSizes kBucketSizes = {.first = std::size_t{32} << 10,
                                               .rest = std::size_t{128} << 10};

  struct TickInfo {
    MembershipId membership;
    Tick tick = 0;
    std::shared_ptr<const ReductionPlan> plan;
    float divisor = 1;  // samples in the tick
    BucketSizes buckets = kBucketSizes;
  };

  Reduction(std::size_t elements, SendFrame send, MemorySource& memory = HeapMemory());

  // Drops the tick in progress. From here on OnFrame takes frames of this tick, even before the
  // local nodes are there; the caller keeps or drops frames of other memberships and ticks.
  void Begin(const TickInfo& info);

  // Sends the pieces of a finished bucket of one of this learner's nodes, which is one of its
  // blocks in the map. Each bucket is added once, in any order. The node's other buckets may still
  // be written to.
  void AddLocal(const HeldNode& node, std::uint32_t bucket);
  // The same for all buckets of a finished node.
  void AddLocal(const HeldNode& node);

  // Takes a kNode or kRoot frame of `rank`. An error changes nothing: kConflict for a frame of
  // another membership or tick, kAlreadyExists for one that was taken before, kInvalid for one that
  // does not fit the map (the peer is wrong: the tick cannot finish with it).
  Status OnFrame(int rank, const Frame& frame);

  // The memory for the payload of an expected kRoot frame: its place in the root, so that OnFrame
  // need not copy it. An empty view for all others.
  MutableBytes ReceiveBufferFor(int rank, const FrameHeader& header, std::size_t bytes) const;

  const BucketLayout& buckets() const { return layout_; }
  bool done() const { return world_size() > 0 && pieces_missing_ == 0; }
  // The mean over the samples. Complete when done(); unchanged until the next Begin.
  std::span<const float> root() const { return root_.view(); }
  // The same, for holders that may outlive this: while it is held, the next Begin takes another
  // buffer.
  const FloatBuffer& shared_root() const { return root_; }

 private:
  // The way of a part, the same in every bucket.
  struct Route {
    ReductionPlan::Part part;
    int from = 0;         // the rank that sends it; this one: it computes it, or adds it up
    std::vector<int> to;  // ranks, in order
    // The sum of which it is an input, and its place among the inputs of a bucket's sums. -1: none.
    int sum = -1;
    std::size_t input = 0;
  };
  struct Sum {
    const ReductionPlan::Addition* addition = nullptr;  // of the plan
    std::size_t first_input = 0;
    std::size_t route = 0;  // of the sum
  };
  struct Bucket {
    ElementRange range;
    std::vector<Bytes> inputs;         // of all sums; each is released once it was added
    std::vector<std::size_t> missing;  // inputs, by sum
    std::vector<std::size_t> places;   // in sums_, by sum; of the means: none
    std::vector<bool> arrived;         // by route
  };

  int world_size() const { return plan_ == nullptr ? 0 : plan_->world_size(); }
  void MakeRoutes();
  std::optional<std::size_t> RouteOf(const ReductionPlan::Part& part) const;
  std::optional<std::size_t> RouteFrom(int rank, const FrameHeader& header) const;
  void PlaceSums();
  ElementRange RangeOf(const Bucket& bucket, std::size_t route) const;  // within the whole vector
  void OnPart(std::uint32_t bucket, std::size_t route, Bytes bytes);
  void AddUp(std::uint32_t bucket, std::size_t sum);
  void KeepMean(const Bytes& payload, ElementRange piece);
  void Send(int rank, std::uint32_t bucket, const ReductionPlan::Part& part, Bytes bytes);

  const std::size_t elements_;
  const SendFrame send_;
  MemorySource& memory_;
  const bool streams_;  // copies finished pieces of others past the caches
  BufferPool roots_;
  BucketLayout layout_;
  std::vector<Bucket> buckets_;  // as in layout_

  // State of the current tick.
  MembershipId membership_;
  Tick tick_ = 0;
  float divisor_ = 1;
  FloatBuffer root_;
  FloatBuffer sums_;  // for other hosts
  std::size_t pieces_missing_ = 0;

  // Derived from the plan; rebuilt only when that changes.
  std::shared_ptr<const ReductionPlan> plan_;
  std::vector<Route> routes_;  // by part
  std::vector<Sum> all_sums_;
  std::size_t inputs_ = 0;  // of all sums of a bucket
  BufferPool sums_pool_;
  TreeSum tree_;
  std::vector<std::span<const float>> input_values_;  // scratch
};

}  // namespace pliant
