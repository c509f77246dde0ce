#include "trainer/collective/reduction.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/check.h"
#include "base/format.h"
#include "trainer/collective/float_loops.h"

namespace pliant {
namespace {

constexpr std::size_t kFloatsPerCacheLine = 16;
// A root that is larger than a core's own cache is no longer in it when the commit reads it.
constexpr std::size_t kMinStreamed = std::size_t{1} << 20;

Bytes BytesOf(const FloatBuffer& values, ElementRange range) {
  return {.owner = std::shared_ptr<const void>(values.owner(), values.view().data()),
          .view = std::as_bytes(values.view().subspan(range.begin, range.size))};
}

bool IsAligned(const Bytes& bytes) {
  return reinterpret_cast<std::uintptr_t>(bytes.view.data()) % alignof(float) == 0;
}

// Returns these bytes, or a copy that is aligned for floats.
Bytes Aligned(const Bytes& bytes) {
  if (IsAligned(bytes)) return bytes;
  const FloatBuffer copy(bytes.view.size() / sizeof(float));
  std::memcpy(copy.view().data(), bytes.view.data(), bytes.view.size());
  return BytesOf(copy, {.begin = 0, .size = copy.view().size()});
}

}  // namespace

ElementRange PieceOf(std::size_t elements, int pieces, int piece) {
  CHECK(piece >= 0 && piece < pieces, "one of the pieces");
  const std::size_t lines = (elements + kFloatsPerCacheLine - 1) / kFloatsPerCacheLine;
  const auto boundary = [&](int index) {
    const std::size_t least = lines / static_cast<std::size_t>(pieces);
    const std::size_t longer = lines % static_cast<std::size_t>(pieces);
    const auto before = static_cast<std::size_t>(index);
    return std::min(elements, (before * least + std::min(before, longer)) * kFloatsPerCacheLine);
  };
  const std::size_t begin = boundary(piece);
  return {.begin = begin, .size = boundary(piece + 1) - begin};
}

Reduction::Reduction(std::size_t elements, SendFrame send, MemorySource& memory)
    : elements_(elements),
      send_(std::move(send)),
      memory_(memory),
      streams_(elements >= kMinStreamed),
      roots_(elements, 1, memory),
      merged_(0, 0, memory) {}

void Reduction::Begin(const TickInfo& info) {
  CHECK(info.self >= 0 && info.self < info.map->world_size(), "a rank of the map");
  membership_ = info.membership;
  tick_ = info.tick;
  const bool same_self = std::exchange(self_, info.self) == info.self;
  divisor_ = info.divisor;
  const bool same_hosts =
      info.host_of_rank == nullptr ? host_of_rank_.empty() : host_of_rank_ == *info.host_of_rank;
  if (map_ != *info.map || !same_hosts || !same_self) MakePlan(info);
  if (const BucketLayout layout(elements_, info.buckets); layout_ != layout) {
    layout_ = layout;
    buckets_.resize(layout_.count());
    for (std::uint32_t index = 0; index < layout_.count(); ++index)
      buckets_[index].range = layout_.RangeOf(index);
  }
  root_ = {};  // before Take, which may return the same buffer
  root_ = roots_.Take();
  pieces_missing_ = 0;
  for (Bucket& bucket : buckets_) {
    bucket.inputs.assign(tree_.nodes().size(), {});
    bucket.inputs_missing = bucket.inputs.size();
    bucket.pieces_held.assign(static_cast<std::size_t>(world_size()), false);
    for (int rank = 0; rank < world_size(); ++rank)
      if (PieceOfBucket(bucket, rank).size > 0) ++pieces_missing_;
    bucket.local_reductions.resize(static_cast<std::size_t>(local_reductions_));
    for (std::size_t i = 0; i < bucket.local_reductions.size(); ++i) {
      const std::size_t parts = merges_[i % merges_.size()].parts.size();
      bucket.local_reductions[i].inputs.assign(parts, {});
      bucket.local_reductions[i].missing = parts;
    }
  }
  PlaceLocalReductions();
}

// The sums of a node's pieces lie one after another, on cache-line boundaries: a whole gradient for
// each node would be many times what this rank writes of it.
void Reduction::PlaceLocalReductions() {
  for (Merge& merge : merges_) merge.sum = {};  // before Take, which may return the same buffer
  if (local_reductions_ == 0) return;
  std::size_t place = 0;
  for (Bucket& bucket : buckets_) {
    for (int rank = 0; rank < world_size(); ++rank) {
      const int first = local_reduction_of_rank_[static_cast<std::size_t>(rank)];
      if (first < 0) continue;
      for (std::size_t merge = 0; merge < merges_.size(); ++merge)
        bucket.local_reductions[static_cast<std::size_t>(first) + merge].place = place;
      const std::size_t lines =
          (PieceOfBucket(bucket, rank).size + kFloatsPerCacheLine - 1) / kFloatsPerCacheLine;
      place += lines * kFloatsPerCacheLine;
    }
  }
  if (place == 0) return;
  if (merged_.buffer_size() != place) merged_ = BufferPool(place, 0, memory_);
  for (Merge& merge : merges_) merge.sum = merged_.Take();
}

void Reduction::MakePlan(const TickInfo& info) {
  map_ = *info.map;
  host_of_rank_ = info.host_of_rank == nullptr ? std::vector<int>{} : *info.host_of_rank;
  plan_ = HostPlan(map_, host_of_rank_);
  const ShardMap inputs = plan_.InputsOf(self_);
  tree_ = TreeSum(inputs);
  rank_of_input_.assign(tree_.nodes().size(), 0);
  for (int rank = 0; rank < world_size(); ++rank)
    for (const ShardBlock& block : inputs.blocks_of_rank[static_cast<std::size_t>(rank)])
      rank_of_input_[static_cast<std::size_t>(tree_.IndexOf(NodeOf(map_.logical_shards, block)))] =
          rank;
  pieces_ = 0;
  piece_of_rank_.clear();
  for (const std::vector<ShardBlock>& blocks : map_.blocks_of_rank)
    piece_of_rank_.push_back(blocks.empty() ? -1 : pieces_++);
  MakeMerges();
  std::size_t max_inputs = tree_.nodes().size();
  for (const Merge& merge : merges_) max_inputs = std::max(max_inputs, merge.parts.size());
  input_values_.resize(max_inputs);
}

void Reduction::MakeMerges() {
  merges_.clear();
  local_reductions_ = 0;
  local_reduction_of_rank_.assign(map_.blocks_of_rank.size(), -1);
  if (plan_.hosts().size() == 1) return;
  for (const HostNode& merged : plan_.MergedBy(self_)) {
    // A node and everything below it form a tree.
    const ShardBlock whole = BlockOf(map_.logical_shards, merged.node);
    std::vector<ShardBlock> below;
    Merge merge{
        .node = merged.node, .tree = {}, .parts = merged.parts, .rank_of_part = {}, .sum = {}};
    for (const NodeIndex part : merged.parts) {
      const ShardBlock block = BlockOf(map_.logical_shards, part);
      below.push_back({.first = block.first - whole.first, .count = block.count});
      for (int rank = 0; rank < world_size(); ++rank)
        if (std::ranges::contains(map_.blocks_of_rank[static_cast<std::size_t>(rank)], block))
          merge.rank_of_part.push_back(rank);
    }
    merge.tree =
        TreeSum(ShardMap{.logical_shards = whole.count, .blocks_of_rank = {std::move(below)}});
    merges_.push_back(std::move(merge));
  }
  if (merges_.empty()) return;
  for (int rank = 0; rank < world_size(); ++rank) {
    const auto index = static_cast<std::size_t>(rank);
    if (piece_of_rank_[index] < 0 || rank == self_ || plan_.RelayOf(self_, rank) != self_) continue;
    local_reduction_of_rank_[index] = local_reductions_;
    local_reductions_ += static_cast<int>(merges_.size());
  }
}

ElementRange Reduction::PieceOfBucket(const Bucket& bucket, int rank) const {
  const int index = piece_of_rank_[static_cast<std::size_t>(rank)];
  if (index < 0) return {.begin = bucket.range.begin, .size = 0};
  ElementRange piece = PieceOf(bucket.range.size, pieces_, index);
  piece.begin += bucket.range.begin;
  return piece;
}

void Reduction::AddLocal(const HeldNode& node) {
  for (std::uint32_t bucket = 0; bucket < layout_.count(); ++bucket) AddLocal(node, bucket);
}

void Reduction::AddLocal(const HeldNode& node, std::uint32_t bucket) {
  CHECK(std::ranges::contains(map_.blocks_of_rank[static_cast<std::size_t>(self_)],
                              BlockOf(map_.logical_shards, node.node)),
        "a node that the map gives to this learner");
  const std::optional<std::size_t> merge = MergeOf(node.node);
  CHECK(bucket < layout_.count(), "one of the buckets");
  // Ranks in turn, beginning after this one, so that not all send to rank 0 first.
  for (int turn = 1; turn <= world_size(); ++turn) {
    const int rank = (self_ + turn) % world_size();
    const ElementRange piece = PieceOfBucket(buckets_[bucket], rank);
    if (piece.size == 0) continue;
    Bytes bytes = BytesOf(node.sum, piece);
    const int to = merge ? plan_.RelayOf(self_, rank) : rank;
    if (to != self_) {
      SendNode(to, bucket, node.node, rank, std::move(bytes));
    } else if (rank == self_) {
      AddInput(bucket, static_cast<std::size_t>(tree_.IndexOf(node.node)), std::move(bytes));
    } else {
      AddLocalPart(bucket, rank, *merge, node.node, std::move(bytes));
    }
  }
}

void Reduction::SendNode(int rank, std::uint32_t bucket, NodeIndex node, int piece, Bytes bytes) {
  send_(rank, {.header = {.kind = FrameKind::kNode,
                          .membership = membership_,
                          .tick = tick_,
                          .bucket = bucket,
                          .node = node,
                          .piece = static_cast<std::uint32_t>(piece)},
               .payload = std::move(bytes)});
}

std::optional<std::size_t> Reduction::MergeOf(NodeIndex part) const {
  for (std::size_t merge = 0; merge < merges_.size(); ++merge)
    if (std::ranges::contains(merges_[merge].parts, part)) return merge;
  return std::nullopt;
}

Status Reduction::OnFrame(int rank, const Frame& frame) {
  const FrameHeader& header = frame.header;
  if (world_size() == 0 || header.membership != membership_ || header.tick != tick_)
    return Fail(ErrorCode::kConflict,
                Format("a frame of membership {} tick {} in membership {} tick {}",
                       ToString(header.membership), header.tick, ToString(membership_), tick_));
  if (rank < 0 || rank >= world_size() || rank == self_)
    return Invalid(Format("a gradient frame of rank {} of {}", rank, world_size()));
  if (header.bucket >= buckets_.size())
    return Invalid(Format("rank {} sent bucket {} of {}", rank, header.bucket, buckets_.size()));
  switch (header.kind) {
    case FrameKind::kNode:
      return TakeNode(rank, frame);
    case FrameKind::kRoot:
      return TakeRoot(rank, frame);
    default:
      return Invalid(
          Format("frame kind {} does not belong to a reduction", static_cast<int>(header.kind)));
  }
}

MutableBytes Reduction::ReceiveBufferFor(int rank, const FrameHeader& header,
                                         std::size_t bytes) const {
  if (header.kind != FrameKind::kRoot || world_size() == 0 || header.membership != membership_ ||
      header.tick != tick_ || rank < 0 || rank >= world_size() || rank == self_ ||
      !RelaysFor(rank, header.piece) || header.bucket >= buckets_.size())
    return {};
  const Bucket& bucket = buckets_[header.bucket];
  const ElementRange piece = PieceOfBucket(bucket, static_cast<int>(header.piece));
  // A piece that is held is already being read, and is not written again whatever a peer sends.
  if (bucket.pieces_held[header.piece] || bytes != piece.size * sizeof(float)) return {};
  return {.owner = std::shared_ptr<void>(root_.owner(), root_.view().data()),
          .view = std::as_writable_bytes(root_.view().subspan(piece.begin, piece.size))};
}

// Whether this rank receives that piece of the root from `rank`.
bool Reduction::RelaysFor(int rank, std::uint32_t piece) const {
  if (piece >= static_cast<std::uint32_t>(world_size())) return false;
  return rank == plan_.SourceOfMean(self_, static_cast<int>(piece));
}

Status Reduction::TakeNode(int rank, const Frame& frame) {
  const FrameHeader& header = frame.header;
  if (header.piece != static_cast<std::uint32_t>(self_) && plan_.SameHost(rank, self_))
    return TakePart(rank, frame);
  const int found = tree_.IndexOf(header.node);
  if (found < 0 || rank_of_input_[static_cast<std::size_t>(found)] != rank)
    return Invalid(Format("rank {} sent node {}, which is not its own", rank, header.node));
  const auto input = static_cast<std::size_t>(found);
  Bucket& bucket = buckets_[header.bucket];
  const ElementRange piece = PieceOfBucket(bucket, self_);
  if (header.piece != static_cast<std::uint32_t>(self_) ||
      frame.payload.view.size() != piece.size * sizeof(float) || piece.size == 0)
    return Invalid(Format("rank {} sent {} bytes of node {} for piece {}, want {} for piece {}",
                          rank, frame.payload.view.size(), header.node, header.piece,
                          piece.size * sizeof(float), self_));
  if (bucket.inputs[input].held)
    return Fail(ErrorCode::kAlreadyExists, Format("rank {} sent node {} of bucket {} twice", rank,
                                                  header.node, header.bucket));
  AddInput(header.bucket, input, Aligned(frame.payload));
  return {};
}

// Takes a node from a rank of this host, for a piece that this rank relays.
Status Reduction::TakePart(int rank, const Frame& frame) {
  const FrameHeader& header = frame.header;
  const std::optional<std::size_t> merge = MergeOf(header.node);
  const auto piece_of = static_cast<int>(
      std::min(header.piece, static_cast<std::uint32_t>(map_.blocks_of_rank.size() - 1)));
  const ElementRange piece = PieceOfBucket(buckets_[header.bucket], piece_of);
  if (!merge || header.piece != static_cast<std::uint32_t>(piece_of) ||
      local_reduction_of_rank_[header.piece] < 0 || piece.size == 0 ||
      frame.payload.view.size() != piece.size * sizeof(float))
    return Invalid(
        Format("rank {} sent {} bytes of node {} for piece {}: this rank does not relay "
               "that piece, or the size is wrong",
               rank, frame.payload.view.size(), header.node, header.piece));
  const std::vector<NodeIndex>& parts = merges_[*merge].parts;
  const auto part = static_cast<std::size_t>(std::ranges::find(parts, header.node) - parts.begin());
  if (merges_[*merge].rank_of_part[part] != rank)
    return Invalid(Format("rank {} sent node {}, which is not its own", rank, header.node));
  if (LocalReductionOf(header.bucket, piece_of, *merge).inputs[part].held)
    return Fail(ErrorCode::kAlreadyExists, Format("rank {} sent node {} of bucket {} twice", rank,
                                                  header.node, header.bucket));
  AddLocalPart(header.bucket, piece_of, *merge, header.node, Aligned(frame.payload));
  return {};
}

Status Reduction::TakeRoot(int rank, const Frame& frame) {
  const FrameHeader& header = frame.header;
  Bucket& bucket = buckets_[header.bucket];
  if (!RelaysFor(rank, header.piece))
    return Invalid(
        Format("rank {} sent piece {} of the root, which is not its to send", rank, header.piece));
  const int piece_of = static_cast<int>(header.piece);
  const ElementRange piece = PieceOfBucket(bucket, piece_of);
  if (header.node != kRootNode || frame.payload.view.size() != piece.size * sizeof(float) ||
      piece.size == 0)
    return Invalid(Format("rank {} sent {} bytes of node {} as piece {} of the root, want {}", rank,
                          frame.payload.view.size(), header.node, header.piece,
                          piece.size * sizeof(float)));
  std::vector<bool>::reference held = bucket.pieces_held[header.piece];
  if (held)
    return Fail(ErrorCode::kAlreadyExists,
                Format("rank {} sent its piece of bucket {} twice", rank, header.bucket));
  float* const place = root_.view().data() + piece.begin;
  const auto* const values = reinterpret_cast<const float*>(frame.payload.view.data());
  if (place != values) {  // it was not received in place
    if (streams_ && IsAligned(frame.payload))
      CopyStreamed(place, values, piece.size);
    else
      std::memcpy(place, values, frame.payload.view.size());
  }
  held = true;
  --pieces_missing_;
  if (plan_.SameHost(rank, self_)) return {};
  for (int other = 0; other < world_size(); ++other)
    if (other != self_ && plan_.SameHost(other, self_)) SendRoot(other, header.bucket, piece_of);
  return {};
}

void Reduction::AddInput(std::uint32_t index, std::size_t input, Bytes bytes) {
  Bucket& bucket = buckets_[index];
  CHECK(!bucket.inputs[input].held, "each node is given once");
  bucket.inputs[input] = {.bytes = std::move(bytes), .held = true};
  if (--bucket.inputs_missing == 0) FinishPiece(index);
}

void Reduction::FinishPiece(std::uint32_t index) {
  Bucket& bucket = buckets_[index];
  const ElementRange piece = PieceOfBucket(bucket, self_);
  for (std::size_t i = 0; i < bucket.inputs.size(); ++i)
    input_values_[i] = {reinterpret_cast<const float*>(bucket.inputs[i].bytes.view.data()),
                        piece.size};
  tree_.Sum(std::span(input_values_).first(bucket.inputs.size()), divisor_,
            root_.view().subspan(piece.begin, piece.size));
  for (Input& input : bucket.inputs) input.bytes = {};
  bucket.pieces_held[static_cast<std::size_t>(self_)] = true;
  --pieces_missing_;
  for (int turn = 1; turn < world_size(); ++turn) {
    const int rank = (self_ + turn) % world_size();
    if (plan_.SourceOfMean(rank, self_) == self_) SendRoot(rank, index, self_);
  }
}

void Reduction::SendRoot(int rank, std::uint32_t bucket, int piece) {
  send_(rank, {.header = {.kind = FrameKind::kRoot,
                          .membership = membership_,
                          .tick = tick_,
                          .bucket = bucket,
                          .node = kRootNode,
                          .piece = static_cast<std::uint32_t>(piece)},
               .payload = BytesOf(root_, PieceOfBucket(buckets_[bucket], piece))});
}

Reduction::LocalReduction& Reduction::LocalReductionOf(std::uint32_t bucket, int piece,
                                                       std::size_t merge) {
  const int first = local_reduction_of_rank_[static_cast<std::size_t>(piece)];
  return buckets_[bucket].local_reductions[static_cast<std::size_t>(first) + merge];
}

void Reduction::AddLocalPart(std::uint32_t bucket, int piece, std::size_t index_of_merge,
                             NodeIndex part, Bytes bytes) {
  const Merge& merge = merges_[index_of_merge];
  LocalReduction& local_reduction = LocalReductionOf(bucket, piece, index_of_merge);
  const auto index =
      static_cast<std::size_t>(std::ranges::find(merge.parts, part) - merge.parts.begin());
  CHECK(!local_reduction.inputs[index].held, "each node is given once");
  local_reduction.inputs[index] = {.bytes = std::move(bytes), .held = true};
  if (--local_reduction.missing > 0) return;
  const ElementRange range{.begin = local_reduction.place,
                           .size = PieceOfBucket(buckets_[bucket], piece).size};
  for (std::size_t i = 0; i < local_reduction.inputs.size(); ++i)
    input_values_[i] = {reinterpret_cast<const float*>(local_reduction.inputs[i].bytes.view.data()),
                        range.size};
  merges_[index_of_merge].tree.Sum(std::span(input_values_).first(local_reduction.inputs.size()), 1,
                                   merge.sum.view().subspan(range.begin, range.size));
  for (Input& input : local_reduction.inputs) input.bytes = {};
  SendNode(piece, bucket, merge.node, piece, BytesOf(merge.sum, range));
}

}  // namespace pliant
