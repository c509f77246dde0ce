#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "base/result.h"
#include "trainer/collective/buckets.h"
#include "trainer/collective/buffer_pool.h"
#include "trainer/collective/gradient_accumulator.h"
#include "trainer/collective/host_plan.h"
#include "trainer/collective/peer_transport.h"
#include "trainer/collective/tree.h"
#include "trainer/collective/tree_sum.h"

namespace pliant {

// Piece `piece` of `elements` cut into `pieces`, on boundaries of cache lines (16 floats); sizes
// differ by at most one line, and pieces of a short vector may be empty.
ElementRange PieceOf(std::size_t elements, int pieces, int piece);

// Sums the gradient of one tick over all learners, without I/O: frames go in by OnFrame and out by
// a callback.
//
// The vector is cut into buckets, every bucket into W pieces. A learner sends piece j of each of
// its nodes to rank j (kNode), which finishes the tree on its piece, divides by the number of
// samples and sends the result to all (kRoot). Buckets travel independently: those that a backward
// pass finishes first are sent while it continues, and adding overlaps with receiving. Sums are out
// of place: inputs are never written, and stay valid for another try under another membership.
//
// Ranks that share a host first add up what goes to other hosts (HostPlan): each sends its node to
// the relay of the piece, which sends the sum to the rank that finishes the piece. On every other
// host one rank receives the finished piece and passes it on.
//
// A rank to which the map gives no shards receives the root like all others, but finishes no piece
// of it: no rank waits for it.
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
    const ShardMap* map = nullptr;  // complete; borrowed during Begin only
    int self = 0;                   // this learner's rank
    float divisor = 1;              // samples in the tick
    BucketSizes buckets = kBucketSizes;
    const std::vector<int>* host_of_rank = nullptr;  // see HostPlan; borrowed; null: all differ
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
  struct Input {
    Bytes bytes;  // released once it was added
    bool held = false;
  };
  struct LocalReduction {   // of one node's parts, for a piece that this rank relays
    std::size_t place = 0;  // of their sum, in Merge::sum
    std::size_t missing = 0;
    std::vector<Input> inputs;
  };
  struct Bucket {
    ElementRange range;
    std::size_t inputs_missing = 0;
    std::vector<Input> inputs;      // this rank's piece of every node, in tree_'s order
    std::vector<bool> pieces_held;  // of the root, by rank
    std::vector<LocalReduction> local_reductions;
  };
  // A node that this host sums up and sends to other hosts as one sum.
  struct Merge {
    NodeIndex node = 0;
    TreeSum tree;                   // of its parts; its node numbers are its own
    std::vector<NodeIndex> parts;   // in `tree`'s order
    std::vector<int> rank_of_part;  // likewise
    FloatBuffer sum;                // only of the pieces that this rank relays
  };

  int world_size() const { return map_.world_size(); }
  ElementRange PieceOfBucket(const Bucket& bucket, int rank) const;  // within the whole vector
  void MakePlan(const TickInfo& info);
  void MakeMerges();
  void PlaceLocalReductions();
  void SendNode(int rank, std::uint32_t bucket, NodeIndex node, int piece, Bytes bytes);
  // The index of the merge in merges_ that has this part.
  std::optional<std::size_t> MergeOf(NodeIndex part) const;
  Status TakeNode(int rank, const Frame& frame);
  Status TakePart(int rank, const Frame& frame);
  Status TakeRoot(int rank, const Frame& frame);
  void AddInput(std::uint32_t bucket, std::size_t input, Bytes bytes);
  void AddLocalPart(std::uint32_t bucket, int piece, std::size_t index_of_merge, NodeIndex part,
                    Bytes bytes);
  void FinishPiece(std::uint32_t bucket);
  void SendRoot(int rank, std::uint32_t bucket, int piece);
  LocalReduction& LocalReductionOf(std::uint32_t bucket, int piece, std::size_t merge);
  bool RelaysFor(int rank, std::uint32_t piece) const;

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
  int self_ = 0;
  float divisor_ = 1;
  FloatBuffer root_;
  std::size_t pieces_missing_ = 0;

  // Derived from the current map, hosts and rank; rebuilt only when they change.
  ShardMap map_;
  std::vector<int> host_of_rank_;
  HostPlan plan_;
  std::vector<Merge> merges_;  // of this host; empty if there are no others
  // By piece: the index of the first of its merges_.size() local reductions; -1: none.
  std::vector<int> local_reduction_of_rank_;
  int local_reductions_ = 0;  // local reductions of each bucket
  BufferPool merged_;         // buffers for Merge::sum
  TreeSum tree_;
  std::vector<int> rank_of_input_;                    // in tree_'s order
  std::vector<int> piece_of_rank_;                    // -1: none
  int pieces_ = 0;                                    // of each bucket
  std::vector<std::span<const float>> input_values_;  // scratch
};

}  // namespace pliant
