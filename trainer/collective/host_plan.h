#pragma once

#include <unordered_map>
#include <vector>

#include "trainer/collective/tree.h"

namespace pliant {

// A node of the tree that the ranks of one host have together, but no single one of them has.
struct HostNode {
  NodeIndex node = 0;
  std::vector<NodeIndex> parts;  // blocks of ranks of the host, by their first shard
  bool operator==(const HostNode&) const = default;
};

// The traffic between hosts where several ranks share one. The ranks of a host first add up their
// nodes among themselves, as far as the fixed tree allows; each sum goes to another host once, and
// each finished piece of the root arrives once. For every piece that is finished on another host
// one rank is the relay, in turn: it sends the host's nodes, and passes on the root. Where each
// rank has a host of its own, every rank is its own relay.
class HostPlan {
 public:
  // `map` is complete. `host_of_rank`: equal for ranks of one host; empty: no ranks share a host.
  HostPlan(const ShardMap& map, const std::vector<int>& host_of_rank);

  bool SameHost(int a, int b) const { return host_of_rank_[Index(a)] == host_of_rank_[Index(b)]; }
  // The rank on the host of `rank` that sends and receives the frames about the piece that rank
  // `piece` finishes. It is `piece` itself, if that is on this host. Otherwise it is one of the
  // ranks that compute, if there are any: no rank waits for the others.
  int RelayOf(int rank, int piece) const;
  // The rank from which `rank` has the finished piece of rank `piece`, or `rank` itself.
  int SourceOfMean(int rank, int piece) const {
    const int relay = RelayOf(rank, piece);
    return relay == rank ? piece : relay;
  }
  // The first rank of each host.
  const std::vector<int>& hosts() const { return first_of_host_; }

  // The nodes that the host of `rank` sums up, by their first shard.
  const std::vector<HostNode>& MergedBy(int rank) const {
    return merged_[Index(host_of_rank_[Index(rank)])];
  }
  const std::vector<int>& RanksOfHost(int rank) const {
    return ranks_[Index(host_of_rank_[Index(rank)])];
  }
  // `node`: a block of the map.
  bool IsMerged(NodeIndex node) const { return blocks_.at(node).merged; }
  int OwnerOf(NodeIndex node) const { return blocks_.at(node).rank; }

  struct Input {
    NodeIndex node = 0;
    int rank = 0;  // which has it
  };
  // The nodes of which the root of the piece that `rank` finishes is made, by their first shard.
  std::vector<Input> InputsOf(int rank) const;

 private:
  struct Block {
    int rank = 0;
    bool merged = false;  // it is a part of a HostNode
  };
  static std::size_t Index(int value) { return static_cast<std::size_t>(value); }

  int logical_shards_ = 1;
  std::unordered_map<NodeIndex, Block> blocks_;  // of the map
  std::vector<int> host_of_rank_;  // numbered from 0, in the order of their first ranks
  std::vector<int> first_of_host_;
  std::vector<std::vector<int>> ranks_;        // by host
  std::vector<std::vector<int>> relays_;       // by host
  std::vector<std::vector<HostNode>> merged_;  // by host
};

}  // namespace pliant
