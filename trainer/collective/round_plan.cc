#include "trainer/collective/round_plan.h"

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "trainer/collective/host_plan.h"
#include "trainer/collective/reduction.h"
#include "trainer/collective/tree_sum.h"

namespace pliant {
namespace {

using Part = RoundPlan::Part;
using Stage = RoundPlan::Stage;

// Collects one rank's part, stage by stage.
class Planner {
 public:
  Planner(const ShardMap& map, const std::vector<int>& host_of_rank, int self)
      : map_(map), hosts_(map, host_of_rank), self_(self) {}

  std::vector<Stage> Stages() {
    for (const ShardBlock& block : map_.blocks_of_rank[static_cast<std::size_t>(self_)])
      SendOwn(NodeOf(map_.logical_shards, block));
    for (const HostNode& merged : hosts_.MergedBy(self_)) Relay(merged);
    Finish();
    SpreadMeans();

    std::vector<Stage> stages;
    if (MergesAnywhere()) stages.push_back(std::move(parts_));
    stages.push_back(std::move(nodes_));
    stages.push_back(std::move(means_));
    if (hosts_.hosts().size() > 1 && std::ssize(hosts_.hosts()) < map_.world_size())
      stages.push_back(std::move(passed_on_));
    for (Stage& stage : stages) {
      const auto part = [](const RoundPlan::Transfer& transfer) { return transfer.part; };
      std::ranges::sort(stage.sends, {}, part);
      std::ranges::sort(stage.receives, {}, part);
    }
    return stages;
  }

 private:
  bool Finishes(int rank) const {
    return !map_.blocks_of_rank[static_cast<std::size_t>(rank)].empty();
  }
  // Calls `body` for every rank that finishes a piece.
  template <typename Body>
  void ForPieces(const Body& body) const {
    for (int rank = 0; rank < map_.world_size(); ++rank)
      if (Finishes(rank)) body(rank);
  }
  bool MergesAnywhere() const {
    return hosts_.hosts().size() > 1 && std::ranges::any_of(hosts_.hosts(), [&](int rank) {
             return !hosts_.MergedBy(rank).empty();
           });
  }

  void SendOwn(NodeIndex node) {
    const bool merged = std::ranges::any_of(hosts_.MergedBy(self_), [&](const HostNode& of_host) {
      return std::ranges::contains(of_host.parts, node);
    });
    ForPieces([&](int piece) {
      const bool here = hosts_.SameHost(self_, piece);
      const int to = merged && !here ? hosts_.RelayOf(self_, piece) : piece;
      if (to == self_) return;
      Stage& stage = merged && !here ? parts_ : nodes_;
      stage.sends.push_back({.rank = to, .part = {.node = node, .piece = piece}});
    });
  }

  // The pieces of a node of this host that this rank sums up for another host.
  void Relay(const HostNode& merged) {
    ForPieces([&](int piece) {
      if (hosts_.SameHost(self_, piece) || hosts_.RelayOf(self_, piece) != self_) return;
      for (int rank = 0; rank < map_.world_size(); ++rank) {
        if (rank == self_) continue;
        for (const ShardBlock& block : map_.blocks_of_rank[static_cast<std::size_t>(rank)]) {
          const NodeIndex node = NodeOf(map_.logical_shards, block);
          if (std::ranges::contains(merged.parts, node))
            parts_.receives.push_back({.rank = rank, .part = {.node = node, .piece = piece}});
        }
      }
      const Part sum{.node = merged.node, .piece = piece};
      parts_.additions.push_back({.sum = sum,
                                  .nodes = merged.parts,
                                  .levels = LevelsOf(map_.logical_shards, merged.parts)});
      nodes_.sends.push_back({.rank = piece, .part = sum});
    });
  }

  void Finish() {
    if (!Finishes(self_)) return;
    const ShardMap inputs = hosts_.InputsOf(self_);
    for (int rank = 0; rank < map_.world_size(); ++rank) {
      if (rank == self_) continue;
      for (const ShardBlock& block : inputs.blocks_of_rank[static_cast<std::size_t>(rank)])
        nodes_.receives.push_back(
            {.rank = rank, .part = {.node = NodeOf(map_.logical_shards, block), .piece = self_}});
    }
    std::vector<NodeIndex> nodes = TreeSum(inputs).nodes();
    TreeLevels levels = LevelsOf(map_.logical_shards, nodes);
    nodes_.additions.push_back({.sum = {.node = RoundPlan::kMean, .piece = self_},
                                .nodes = std::move(nodes),
                                .levels = std::move(levels)});
  }

  void SpreadMeans() {
    const auto mean = [](int piece) { return Part{.node = RoundPlan::kMean, .piece = piece}; };
    for (int rank = 0; rank < map_.world_size(); ++rank) {
      if (rank == self_ || !Finishes(self_)) continue;
      if (hosts_.SourceOfMean(rank, self_) == self_)
        means_.sends.push_back({.rank = rank, .part = mean(self_)});
    }
    ForPieces([&](int piece) {
      if (piece == self_) return;
      const int source = hosts_.SourceOfMean(self_, piece);
      Stage& stage = source == piece ? means_ : passed_on_;
      stage.receives.push_back({.rank = source, .part = mean(piece)});
      if (source != piece || hosts_.SameHost(self_, piece)) return;
      for (int rank = 0; rank < map_.world_size(); ++rank)
        if (rank != self_ && hosts_.SameHost(rank, self_))
          passed_on_.sends.push_back({.rank = rank, .part = mean(piece)});
    });
  }

  const ShardMap& map_;
  const HostPlan hosts_;
  const int self_;
  Stage parts_;
  Stage nodes_;
  Stage means_;
  Stage passed_on_;
};

}  // namespace

RoundPlan::RoundPlan(const ShardMap& map, const std::vector<int>& host_of_rank, int self)
    : stages_(Planner(map, host_of_rank, self).Stages()) {
  CHECK(self >= 0 && self < map.world_size(), "a rank of the map");
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

std::optional<std::size_t> RoundPlan::HeldIndex(const Part& part) const {
  const auto found = std::ranges::lower_bound(held_, part);
  if (found == held_.end() || *found != part) return std::nullopt;
  return static_cast<std::size_t>(found - held_.begin());
}

ElementRange RoundPlan::RangeOf(ElementRange bucket, int piece) const {
  const int index = piece_of_rank_[static_cast<std::size_t>(piece)];
  CHECK(index >= 0, "a rank that finishes a piece");
  ElementRange range = PieceOf(bucket.size, pieces_, index);
  range.begin += bucket.begin;
  return range;
}

std::size_t RoundPlan::MaxPiece(std::size_t bucket) const {
  return PieceOf(bucket, pieces_, 0).size;  // the first ones have more
}

}  // namespace pliant
