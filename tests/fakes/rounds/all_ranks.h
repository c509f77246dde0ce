#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "trainer/collective/buckets.h"
#include "trainer/collective/reduction_plan.h"

namespace pliant {

// Carries out the plans of all ranks, round by round, on values of any kind: numbers, or
// expressions. Throws std::runtime_error where a device would deadlock or use wrong memory.
template <typename Value>
class AllRanks {
 public:
  // A rank's own node, in one piece of one bucket.
  using Own = std::function<Value(int rank, NodeIndex node, ElementRange range)>;
  using Add = std::function<Value(const Value& left, const Value& right)>;
  using Means = std::map<std::size_t, Value>;  // by the first element of each piece

  AllRanks(std::vector<ReductionPlan> plans, BucketLayout layout, Own own, Add add)
      : plans_(std::move(plans)),
        layout_(layout),
        own_(std::move(own)),
        add_(std::move(add)),
        held_(plans_.size()),
        means_(plans_.size()) {
    for (std::size_t rank = 0; rank < plans_.size(); ++rank)
      held_[rank].resize(plans_[rank].held().size());
  }

  // The root before the division, of each rank.
  std::vector<Means> Run() {
    for (std::size_t round = 0; round < plans_.front().rounds(layout_.count()); ++round) Run(round);
    return std::move(means_);
  }

 private:
  struct Held {
    std::uint32_t bucket = 0;
    Value value;
  };
  struct Message {
    std::uint32_t bucket = 0;
    ReductionPlan::Part part;
    Value value;
  };

  static void Must(bool fine, const char* what) {
    if (!fine) throw std::runtime_error(what);
  }

  template <typename Body>
  void ForStages(std::size_t rank, std::size_t round, const Body& body) {
    const auto& stages = plans_[rank].stages();
    for (std::size_t stage = 0; stage < stages.size(); ++stage)
      if (stage <= round && round - stage < layout_.count())
        body(stages[stage], static_cast<std::uint32_t>(round - stage));
  }

  void Run(std::size_t round) {
    // Between two ranks, in order.
    std::map<std::pair<std::size_t, std::size_t>, std::vector<Message>> travelling;
    for (std::size_t rank = 0; rank < plans_.size(); ++rank) {
      ForStages(rank, round, [&](const ReductionPlan::Stage& stage, std::uint32_t bucket) {
        for (const auto& [to, part] : stage.sends) {
          if (RangeOf(rank, bucket, part).size == 0) continue;
          travelling[{rank, static_cast<std::size_t>(to)}].push_back(
              {bucket, part, ValueOf(rank, bucket, part)});
        }
      });
    }
    std::map<std::pair<std::size_t, std::size_t>, std::size_t> received;
    for (std::size_t rank = 0; rank < plans_.size(); ++rank) {
      ForStages(rank, round, [&](const ReductionPlan::Stage& stage, std::uint32_t bucket) {
        for (const auto& [from, part] : stage.receives) {
          if (RangeOf(rank, bucket, part).size == 0) continue;
          const std::pair link{static_cast<std::size_t>(from), rank};
          const std::size_t next = received[link]++;
          Must(next < travelling[link].size(), "a receive without its send");
          const Message& message = travelling[link][next];
          Must(message.bucket == bucket && message.part == part, "another part than was sent");
          Store(rank, bucket, part, message.value);
        }
      });
    }
    for (const auto& [link, messages] : travelling)
      Must(received[link] == messages.size(), "a send without its receive");
    for (std::size_t rank = 0; rank < plans_.size(); ++rank) {
      ForStages(rank, round, [&](const ReductionPlan::Stage& stage, std::uint32_t bucket) {
        for (const ReductionPlan::Addition& addition : stage.additions)
          if (RangeOf(rank, bucket, addition.sum).size > 0) Carry(rank, bucket, addition);
      });
    }
  }

  ElementRange RangeOf(std::size_t rank, std::uint32_t bucket,
                       const ReductionPlan::Part& part) const {
    return plans_[rank].RangeOf(layout_.RangeOf(bucket), part.piece);
  }

  Value ValueOf(std::size_t rank, std::uint32_t bucket, const ReductionPlan::Part& part) {
    const ElementRange range = RangeOf(rank, bucket, part);
    if (part.node == ReductionPlan::kMean) {
      const auto found = means_[rank].find(range.begin);
      Must(found != means_[rank].end(), "a mean that is not there yet");
      return found->second;
    }
    if (const auto index = plans_[rank].HeldIndex(part)) {
      const std::optional<Held>& held = held_[rank][*index];
      Must(held && held->bucket == bucket, "a part of another bucket");
      return held->value;
    }
    Must(std::ranges::contains(plans_[rank].own(), part.node),
         "a node that the rank does not have");
    return own_(static_cast<int>(rank), part.node, range);
  }

  void Store(std::size_t rank, std::uint32_t bucket, const ReductionPlan::Part& part, Value value) {
    if (part.node == ReductionPlan::kMean) {
      const bool is_new =
          means_[rank].emplace(RangeOf(rank, bucket, part).begin, std::move(value)).second;
      return Must(is_new, "a mean that was there already");
    }
    const auto index = plans_[rank].HeldIndex(part);
    Must(index.has_value(), "no memory for this part");
    held_[rank][*index] = Held{bucket, std::move(value)};
  }

  // As the kernels do: see TreeLevels.
  void Carry(std::size_t rank, std::uint32_t bucket, const ReductionPlan::Addition& addition) {
    std::map<int, Value> waiting;
    std::optional<Value> sum;
    for (std::size_t i = 0; i < addition.nodes.size(); ++i) {
      sum = ValueOf(rank, bucket, {.node = addition.nodes[i], .piece = addition.sum.piece});
      for (int level = addition.levels.first[i]; level < addition.levels.last[i]; ++level)
        sum = add_(waiting.at(level), *sum);
      waiting.insert_or_assign(addition.levels.last[i], *sum);
    }
    Must(sum.has_value(), "something is added");
    Store(rank, bucket, addition.sum, *std::move(sum));
  }

  const std::vector<ReductionPlan> plans_;
  const BucketLayout layout_;
  const Own own_;
  const Add add_;
  std::vector<std::vector<std::optional<Held>>> held_;  // by rank
  std::vector<Means> means_;                            // by rank
};

}  // namespace pliant
