#include "trainer/collective/reduction.h"

#include <algorithm>
#include <cstring>
#include <format>
#include <utility>

#include "base/check.h"
#include "trainer/collective/float_loops.h"

namespace pliant {
namespace {

constexpr std::size_t kFloatsPerCacheLine = 16;
// A root that is larger than a core's own cache is not there any more when the commit reads it.
constexpr std::size_t kStreamedLeast = std::size_t{1} << 20;

Bytes BytesOf(const FloatBuffer& values, ElementRange range) {
  return {.owner = std::shared_ptr<const void>(values.owner(), values.view().data()),
          .view = std::as_bytes(values.view().subspan(range.begin, range.size))};
}

bool IsAligned(const Bytes& bytes) {
  return reinterpret_cast<std::uintptr_t>(bytes.view.data()) % alignof(float) == 0;
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
      streams_(elements >= kStreamedLeast),
      roots_(elements, 1, memory) {}

void Reduction::Begin(const TickInfo& info) {
  CHECK(info.self >= 0 && info.self < info.map->world_size(), "a rank of the map");
  membership_ = info.membership;
  tick_ = info.tick;
  self_ = info.self;
  divisor_ = info.divisor;
  if (map_ != *info.map) {
    map_ = *info.map;
    tree_ = TreeSum(map_);
    rank_of_input_.assign(tree_.nodes().size(), 0);
    for (int rank = 0; rank < world_size(); ++rank)
      for (const ShardBlock& block : map_.blocks_of_rank[static_cast<std::size_t>(rank)])
        rank_of_input_[static_cast<std::size_t>(
            tree_.IndexOf(NodeOf(map_.logical_shards, block)))] = rank;
    input_values_.resize(tree_.nodes().size());
    pieces_ = 0;
    piece_of_rank_.clear();
    for (const std::vector<ShardBlock>& blocks : map_.blocks_of_rank)
      piece_of_rank_.push_back(blocks.empty() ? -1 : pieces_++);
  }
  if (const BucketLayout layout(elements_, info.buckets); layout_ != layout) {
    layout_ = layout;
    buckets_.resize(layout_.count());
    for (std::uint32_t index = 0; index < layout_.count(); ++index)
      buckets_[index].range = layout_.RangeOf(index);
  }
  root_ = {};  // before Take, which may give it back
  root_ = roots_.Take();
  pieces_missing_ = 0;
  for (Bucket& bucket : buckets_) {
    bucket.inputs.assign(tree_.nodes().size(), {});
    bucket.inputs_missing = bucket.inputs.size();
    bucket.pieces_held.assign(static_cast<std::size_t>(world_size()), false);
    for (int rank = 0; rank < world_size(); ++rank)
      if (PieceOfBucket(bucket, rank).size > 0) ++pieces_missing_;
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
  const int input = tree_.IndexOf(node.node);
  CHECK(input >= 0 && rank_of_input_[static_cast<std::size_t>(input)] == self_,
        "a node that the map gives to this learner");
  CHECK(bucket < layout_.count(), "one of the buckets");
  // Ranks in turn, beginning behind this one, so that not all send to rank 0 first.
  for (int turn = 1; turn <= world_size(); ++turn) {
    const int rank = (self_ + turn) % world_size();
    const ElementRange piece = PieceOfBucket(buckets_[bucket], rank);
    if (piece.size == 0) continue;
    Bytes bytes = BytesOf(node.sum, piece);
    if (rank == self_) {
      AddInput(bucket, static_cast<std::size_t>(input), std::move(bytes));
    } else {
      send_(rank, {.header = {.kind = FrameKind::kNode,
                              .membership = membership_,
                              .tick = tick_,
                              .bucket = bucket,
                              .node = node.node,
                              .piece = static_cast<std::uint32_t>(rank)},
                   .payload = std::move(bytes)});
    }
  }
}

Status Reduction::OnFrame(int rank, const Frame& frame) {
  const FrameHeader& header = frame.header;
  if (world_size() == 0 || header.membership != membership_ || header.tick != tick_)
    return Fail(
        ErrorCode::kConflict,
        std::format("a frame of membership {} tick {} in membership {} tick {}",
                    ToString(header.membership), header.tick, ToString(membership_), tick_));
  if (rank < 0 || rank >= world_size() || rank == self_)
    return Invalid(std::format("a gradient frame of rank {} of {}", rank, world_size()));
  if (header.bucket >= buckets_.size())
    return Invalid(
        std::format("rank {} sent bucket {} of {}", rank, header.bucket, buckets_.size()));
  switch (header.kind) {
    case FrameKind::kNode:
      return TakeNode(rank, frame);
    case FrameKind::kRoot:
      return TakeRoot(rank, frame);
    default:
      return Invalid(
          std::format("frame kind {} is no part of a reduction", static_cast<int>(header.kind)));
  }
}

MutableBytes Reduction::PlaceFor(int rank, const FrameHeader& header, std::size_t bytes) const {
  if (header.kind != FrameKind::kRoot || world_size() == 0 || header.membership != membership_ ||
      header.tick != tick_ || rank < 0 || rank >= world_size() || rank == self_ ||
      header.piece != static_cast<std::uint32_t>(rank) || header.bucket >= buckets_.size())
    return {};
  const Bucket& bucket = buckets_[header.bucket];
  const ElementRange piece = PieceOfBucket(bucket, rank);
  // What is held is read already, and not written again whatever a peer sends.
  if (bucket.pieces_held[static_cast<std::size_t>(rank)] || bytes != piece.size * sizeof(float))
    return {};
  return {.owner = std::shared_ptr<void>(root_.owner(), root_.view().data()),
          .view = std::as_writable_bytes(root_.view().subspan(piece.begin, piece.size))};
}

Status Reduction::TakeNode(int rank, const Frame& frame) {
  const FrameHeader& header = frame.header;
  const int found = tree_.IndexOf(header.node);
  if (found < 0 || rank_of_input_[static_cast<std::size_t>(found)] != rank)
    return Invalid(std::format("rank {} sent node {}, which is not its own", rank, header.node));
  const auto input = static_cast<std::size_t>(found);
  Bucket& bucket = buckets_[header.bucket];
  const ElementRange piece = PieceOfBucket(bucket, self_);
  if (header.piece != static_cast<std::uint32_t>(self_) ||
      frame.payload.view.size() != piece.size * sizeof(float) || piece.size == 0)
    return Invalid(std::format(
        "rank {} sent {} bytes of node {} for piece {}, want {} for piece {}", rank,
        frame.payload.view.size(), header.node, header.piece, piece.size * sizeof(float), self_));
  if (bucket.inputs[input].held)
    return Fail(ErrorCode::kAlreadyExists, std::format("rank {} sent node {} of bucket {} twice",
                                                       rank, header.node, header.bucket));
  if (IsAligned(frame.payload)) {
    AddInput(header.bucket, input, frame.payload);
  } else {
    const FloatBuffer copy(piece.size);
    std::memcpy(copy.view().data(), frame.payload.view.data(), frame.payload.view.size());
    AddInput(header.bucket, input, BytesOf(copy, {.begin = 0, .size = piece.size}));
  }
  return {};
}

Status Reduction::TakeRoot(int rank, const Frame& frame) {
  const FrameHeader& header = frame.header;
  Bucket& bucket = buckets_[header.bucket];
  const ElementRange piece = PieceOfBucket(bucket, rank);
  if (header.piece != static_cast<std::uint32_t>(rank) || header.node != kRootNode ||
      frame.payload.view.size() != piece.size * sizeof(float) || piece.size == 0)
    return Invalid(std::format("rank {} sent {} bytes of node {} as piece {} of the root, want {}",
                               rank, frame.payload.view.size(), header.node, header.piece,
                               piece.size * sizeof(float)));
  std::vector<bool>::reference held = bucket.pieces_held[static_cast<std::size_t>(rank)];
  if (held)
    return Fail(ErrorCode::kAlreadyExists,
                std::format("rank {} sent its piece of bucket {} twice", rank, header.bucket));
  float* const place = root_.view().data() + piece.begin;
  const auto* const values = reinterpret_cast<const float*>(frame.payload.view.data());
  if (place != values) {  // it was not received there
    if (streams_ && IsAligned(frame.payload))
      CopyStreamed(place, values, piece.size);
    else
      std::memcpy(place, values, frame.payload.view.size());
  }
  held = true;
  --pieces_missing_;
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
  tree_.Sum(input_values_, divisor_, root_.view().subspan(piece.begin, piece.size));
  for (Input& input : bucket.inputs) input.bytes = {};
  bucket.pieces_held[static_cast<std::size_t>(self_)] = true;
  --pieces_missing_;
  for (int turn = 1; turn < world_size(); ++turn)
    send_((self_ + turn) % world_size(), {.header = {.kind = FrameKind::kRoot,
                                                     .membership = membership_,
                                                     .tick = tick_,
                                                     .bucket = index,
                                                     .node = kRootNode,
                                                     .piece = static_cast<std::uint32_t>(self_)},
                                          .payload = BytesOf(root_, piece)});
}

}  // namespace pliant
