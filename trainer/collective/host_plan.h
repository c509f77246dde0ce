#pragma once

#include <vector>

#include "trainer/collective/tree.h"

namespace pliant {

// A node of the tree that the ranks of one host have together, and no single one of them.
struct HostNode {
  NodeIndex node = 0;
  std::vector<NodeIndex> parts;  // blocks of ranks of the host, by their first shard
  bool operator==(const HostNode&) const = default;
};

// What travels between hosts where several ranks share one. They add their nodes up among
// themselves first, as far as the fixed tree lets them; each sum goes to another host once, and
// each finished piece of the root comes once. For every piece that is finished elsewhere one rank
// of the host speaks for it, in turn: it sends the host's nodes, and passes on the root. Where each
// rank has a host of its own, all speak for themselves.
class HostPlan {
 public:
  HostPlan() = default;
  // `map` is complete. `host_of_rank`: equal for ranks of one host; empty: none share one.
  HostPlan(const ShardMap& map, const std::vector<int>& host_of_rank);

  bool SameHost(int a, int b) const { return host_of_rank_[Index(a)] == host_of_rank_[Index(b)]; }
  // Whose frames a rank gets, and who gets its frames, about the piece that `piece` finishes: on
  // the host of `rank`. `piece` itself, if that is there. Of the ranks that compute, where some do:
  // nobody waits for the others.
  int RelayOf(int rank, int piece) const;
  // The first rank of each host.
  const std::vector<int>& hosts() const { return first_of_host_; }

  // Of the host of `rank`, by the first shard.
  const std::vector<HostNode>& MergedBy(int rank) const {
    return merged_[Index(host_of_rank_[Index(rank)])];
  }
  // Who sends what of the piece that `rank` finishes.
  ShardMap InputsOf(int rank) const;

 private:
  static std::size_t Index(int value) { return static_cast<std::size_t>(value); }

  ShardMap map_;
  std::vector<int> host_of_rank_;  // numbers from 0, in the order of their first ranks
  std::vector<int> first_of_host_;
  std::vector<std::vector<int>> relays_;       // by host
  std::vector<std::vector<HostNode>> merged_;  // by host
};

}  // namespace pliant
