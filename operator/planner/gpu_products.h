#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string_view>
#include <vector>

#include "operator/planner/model.h"

namespace pliant::planner {

// The product on which a job began, if it must stay there.
std::optional<std::string_view> FixedProduct(const JobView& job);

// Decides of which GPU product the GPUs of a bitwise job are: different products may compute
// different bits. It stays on the product that it began on, and before that on the one that its
// learners hold. For pools whose nodes have several products.
class GpuProducts {
 public:
  // `fit_of`: the index of what a job can use of one product. `model` has its nodes, and its jobs
  // with their minimums; both outlive this object.
  using FitOf = std::function<int(const Job&, std::string_view product)>;
  GpuProducts(const Model& model, FitOf fit_of);

  // The products that the job may use, one of them, the best ones first; empty: any. Jobs without
  // learners choose, each from what the previous ones have left: call this in the order in which
  // they were submitted.
  std::vector<std::string_view> ChoicesFor(const Job& job);

 private:
  // The room of one product's nodes for learners of one kind.
  struct Room {
    std::int64_t slots = 0;       // if its nodes are empty
    std::int64_t free = 0;        // of these: that can start at once
    std::int64_t attainable = 0;  // once all jobs are at their minimums
  };

  const Room& RoomOf(int fit);
  std::vector<std::string_view> Choose(const Job& job);

  const Model& model_;
  FitOf fit_of_;
  std::map<std::string_view, std::int64_t> products_;  // with the GPUs that were promised
  std::vector<std::int64_t> used_gpus_;                // by node: of learners
  std::vector<std::int64_t> needed_gpus_;              // by node: of these, for minimums
  std::map<int, Room> rooms_;                          // by fit
};

}  // namespace pliant::planner
