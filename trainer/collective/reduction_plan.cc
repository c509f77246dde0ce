#include "trainer/collective/reduction_plan.h"

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "trainer/collective/cache_line.h"
#include "trainer/collective/host_plan.h"

namespace pliant {
namespace {

using Part = ReductionPlan::Part;
using Stage = ReductionPlan::Stage;
using Transfer = ReductionPlan::Transfer;

// Collects one rank's part, stage by stage.
class Planner {
 public:
  Planner(const ShardMap& map, const std::vector<int>& host_of_rank, int self)
      : map_(map), hosts_(map, host_of_rank), self_(self) {
    for (int rank = 0; rank < map.world_size(); ++rank)
      if (!map.blocks_of_rank[static_cast<std::size_t>(rank)].empty()) pieces_.push_back(rank);
  }

  std::vector<Stage> Stages() {
    for (const ShardBlock& block : map_.blocks_of_rank[static_cast<std::size_t>(self_)])
      SendOwn(NodeOf(map_.logical_shards, block));
    for (const HostNode& merged : hosts_.MergedBy(self_)) Relay(merged);
    if (std::ranges::binary_search(pieces_, self_)) Finish();
    SpreadMeans();

    std::vector<Stage> stages;
    if (MergesAnywhere()) stages.push_back(std::move(parts_));
    stages.push_back(std::move(nodes_));
    stages.push_back(std::move(means_));
    if (hosts_.hosts().size() > 1 && std::ssize(hosts_.hosts()) < map_.world_size())
      stages.push_back(std::move(passed_on_));
    for (Stage& stage : stages) {
      std::ranges::stable_sort(stage.sends, {}, [this](const Transfer& transfer) {
        return std::pair(TurnOf(transfer.part.piece, self_), transfer.part.node);
      });
      std::ranges::stable_sort(stage.receives, {}, [this](const Transfer& transfer) {
        return std::pair(TurnOf(transfer.part.piece, transfer.rank), transfer.part.node);
      });
    }
    return stages;
  }

 private:
  // Pieces have their turns after the sender's own one, which comes last.
  int TurnOf(int piece, int sender) const {
    return (piece - sender - 1 + map_.world_size()) % map_.world_size();
  }
  bool MergesAnywhere() const {
    return hosts_.hosts().size() > 1 && std::ranges::any_of(hosts_.hosts(), [&](int rank) {
             return !hosts_.MergedBy(rank).empty();
           });
  }
  bool Relays(int piece) const {
    return !hosts_.SameHost(self_, piece) && hosts_.RelayOf(self_, piece) == self_;
  }

  void SendOwn(NodeIndex node) {
    const bool merged = hosts_.IsMerged(node);
    for (const int piece : pieces_) {
      const bool here = hosts_.SameHost(self_, piece);
      const int to = merged && !here ? hosts_.RelayOf(self_, piece) : piece;
      if (to == self_) continue;
      Stage& stage = merged && !here ? parts_ : nodes_;
      stage.sends.push_back({.rank = to, .part = {.node = node, .piece = piece}});
    }
  }

  // The pieces of a node of this host that this rank sums up for another host.
  void Relay(const HostNode& merged) {
    const TreeLevels levels = LevelsOf(map_.logical_shards, merged.parts);
    for (const int piece : pieces_) {
      if (!Relays(piece)) continue;
      for (const NodeIndex part : merged.parts) {
        const int rank = hosts_.OwnerOf(part);
        if (rank != self_)
          parts_.receives.push_back({.rank = rank, .part = {.node = part, .piece = piece}});
      }
      const Part sum{.node = merged.node, .piece = piece};
      parts_.additions.push_back({.sum = sum, .nodes = merged.parts, .levels = levels});
      nodes_.sends.push_back({.rank = piece, .part = sum});
    }
  }

  void Finish() {
    std::vector<NodeIndex> nodes;
    for (const auto& [node, rank] : hosts_.InputsOf(self_)) {
      nodes.push_back(node);
      if (rank != self_)
        nodes_.receives.push_back({.rank = rank, .part = {.node = node, .piece = self_}});
    }
    TreeLevels levels = LevelsOf(map_.logical_shards, nodes);
    nodes_.additions.push_back({.sum = {.node = ReductionPlan::kMean, .piece = self_},
                                .nodes = std::move(nodes),
                                .levels = std::move(levels)});
    for (int turn = 1; turn < map_.world_size(); ++turn) {
      const int rank = (self_ + turn) % map_.world_size();
      if (hosts_.SourceOfMean(rank, self_) == self_)
        means_.sends.push_back(
            {.rank = rank, .part = {.node = ReductionPlan::kMean, .piece = self_}});
    }
  }

  void SpreadMeans() {
    for (const int piece : pieces_) {
      if (piece == self_) continue;
      const Part mean{.node = ReductionPlan::kMean, .piece = piece};
      const int source = hosts_.SourceOfMean(self_, piece);
      Stage& stage = source == piece ? means_ : passed_on_;
      stage.receives.push_back({.rank = source, .part = mean});
      if (source != piece || hosts_.SameHost(self_, piece)) continue;
      for (const int rank : hosts_.RanksOfHost(self_))
        if (rank != self_) passed_on_.sends.push_back({.rank = rank, .part = mean});
    }
  }

  const ShardMap& map_;
  const HostPlan hosts_;
  const int self_;
  std::vector<int> pieces_;  // the ranks that finish one
  Stage parts_;
  Stage nodes_;
  Stage means_;
  Stage passed_on_;
};

}  // namespace

ElementRange PieceOf(std::size_t elements, int pieces, int piece) {
  CHECK(piece >= 0 && piece < pieces, "one of the pieces");
  const std::size_t lines = CacheLines(elements);
  const auto boundary = [&](int index) {
    const std::size_t least = lines / static_cast<std::size_t>(pieces);
    const std::size_t longer = lines % static_cast<std::size_t>(pieces);
    const auto before = static_cast<std::size_t>(index);
    return std::min(elements, (before * least + std::min(before, longer)) * kFloatsPerCacheLine);
  };
  const std::size_t begin = boundary(piece);
  return {.begin = begin, .size = boundary(piece + 1) - begin};
}

ReductionPlan::ReductionPlan(const ShardMap& map, const std::vector<int>& host_of_rank, int self)
    : self_(self) {
  CHECK(self >= 0 && self < map.world_size(), "a rank of the map");
  CHECK(IsComplete(map), "the nodes cover all shards");
  stages_ = Planner(map, host_of_rank, self).Stages();
  for (const ShardBlock& block : map.blocks_of_rank[static_cast<std::size_t>(self)])
    own_.push_back(NodeOf(map.logical_shards, block));
  for (const std::vector<ShardBlock>& blocks : map.blocks_of_rank) {
    piece_of_rank_.push_back(blocks.empty() ? -1 : pieces_++);
    int shards = 0;
    for (const ShardBlock& block : blocks) shards += block.count;
    most_shards_ = std::max(most_shards_, shards);
  }
  for (const Stage& stage : stages_) {
    for (const Transfer& transfer : stage.receives)
      if (transfer.part.node != kMean) held_.push_back(transfer.part);
    for (const Addition& addition : stage.additions)
      if (addition.sum.node != kMean) held_.push_back(addition.sum);
  }
  std::ranges::sort(held_);
}

std::optional<std::size_t> ReductionPlan::HeldIndex(const Part& part) const {
  const auto found = std::ranges::lower_bound(held_, part);
  if (found == held_.end() || *found != part) return std::nullopt;
  return static_cast<std::size_t>(found - held_.begin());
}

ElementRange ReductionPlan::RangeOf(ElementRange bucket, int piece) const {
  const int index = piece_of_rank_[static_cast<std::size_t>(piece)];
  CHECK(index >= 0, "a rank that finishes a piece");
  ElementRange range = PieceOf(bucket.size, pieces_, index);
  range.begin += bucket.begin;
  return range;
}

std::size_t ReductionPlan::MaxPiece(std::size_t bucket) const {
  return PieceOf(bucket, pieces_, 0).size;  // the first ones have more
}

std::shared_ptr<const ReductionPlan> LastReductionPlan::For(const ShardMap& map,
                                                            const std::vector<int>& host_of_rank,
                                                            int self) {
  if (plan_ == nullptr || plan_->self() != self || map_ != map || host_of_rank_ != host_of_rank) {
    map_ = map;
    host_of_rank_ = host_of_rank;
    plan_ = std::make_shared<const ReductionPlan>(map, host_of_rank, self);
  }
  return plan_;
}

}  // namespace pliant
