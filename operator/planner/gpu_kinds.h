#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string_view>
#include <vector>

#include "operator/planner/model.h"

namespace pliant::planner {

// By the labels of the node.
GpuKind GpusOn(const NodeView& node);

// The product on which a job began, if it must stay there.
std::optional<std::string_view> FixedProduct(const JobView& job);

// Decides which kind of GPUs a bitwise job uses: products and drivers may compute different bits,
// and learners with different ones are not let into one membership. It stays on the product that it
// began on, and on the kind that its learners hold: it changes to another driver only when it has
// none, as after the last node's driver was upgraded. For pools whose nodes have several kinds.
class GpuKinds {
 public:
  // `fit_of`: the index of what a job can use of one kind. `model` has its nodes, and its jobs with
  // their minimums; both outlive this object.
  using FitOf = std::function<int(const Job&, const GpuKind& kind)>;
  GpuKinds(const Model& model, FitOf fit_of);

  // The kinds that the job may use, one of them, the best ones first; empty: any. Jobs without
  // learners choose, each from what the previous ones have left: call this in the order in which
  // they were submitted.
  std::vector<GpuKind> ChoicesFor(const Job& job);

 private:
  // The room of one kind's nodes for learners with equal needs.
  struct Room {
    std::int64_t slots = 0;       // if the nodes are empty
    std::int64_t free = 0;        // of these: that can start at once
    std::int64_t attainable = 0;  // once all jobs are at their minimums
  };

  const Room& RoomOf(int fit);
  // `product`: only kinds of it; absent: all.
  std::vector<GpuKind> Choose(const Job& job, std::optional<std::string_view> product);

  const Model& model_;
  FitOf fit_of_;
  std::map<GpuKind, std::int64_t> kinds_;  // with the GPUs that were promised
  std::vector<std::int64_t> used_gpus_;    // by node: of learners
  std::vector<std::int64_t> needed_gpus_;  // by node: of these, for minimums
  std::map<int, Room> rooms_;              // by fit
};

}  // namespace pliant::planner
