#include "trainer/runtime/device_tick.h"

#include <algorithm>

#include "trainer/collective/float_loops.h"
#include "trainer/collective/gradient_square.h"
#include "trainer/collective/tree_levels.h"
#include "trainer/protocol/spot_check.h"

namespace pliant {

DeviceTick::DeviceTick(Memory memory, GradientAccumulator& accumulator, const TickWork& work,
                       TickControl& control, OnPart on_part)
    : memory_(memory),
      accumulator_(accumulator),
      work_(work),
      control_(control),
      on_part_(std::move(on_part)),
      lanes_of_gradient_(work.measure ? accumulator.cells().count() * kSquareLanes : 0),
      follow_(work.tasks.size() + 1) {
  const std::size_t lanes = work.tasks.size() * lanes_of_gradient_;
  const std::size_t doubles = kMaxSums * follow_.size() + lanes;
  shard_memory_ = memory_.pinned.Take(doubles * sizeof(double) + sizeof(std::uint64_t));
  std::byte* const begin = shard_memory_.view.data();
  const std::span all(reinterpret_cast<double*>(begin), doubles);
  sums_ = all.first(kMaxSums * follow_.size());
  lanes_ = all.last(lanes);
  checksum_ = reinterpret_cast<std::uint64_t*>(begin + all.size_bytes());
}

void DeviceTick::Offer(std::size_t task, ShardWork& work) {
  follow_[task] = 0;
  work.sums = sums_.subspan(kMaxSums * task, kMaxSums);
  work.sums_follow = &follow_[task];
}

void DeviceTick::OnLeaf(std::size_t task, std::span<const float> leaf) {
  if (!work_.measure) return;
  memory_.device.Squares(leaf, lanes_.subspan(task * lanes_of_gradient_, lanes_of_gradient_));
}

void DeviceTick::Check(std::size_t task, std::span<const float> gradient,
                       std::span<const std::byte> buffers, const ShardSums& sums, TickOutput&) {
  memory_.device.Checksum(gradient, *checksum_);
  checked_ = {.task = task, .buffers = buffers, .sums = sums};
}

void DeviceTick::OnFinished(std::size_t task, ShardResult&) {
  memory_.device.Then([&control = control_, task](const Status&) {
    control.done.store(task + 1, std::memory_order_relaxed);
  });
}

void DeviceTick::HandOut(const HeldNode& node, std::uint32_t bucket) {
  const ElementRange range = accumulator_.buckets().RangeOf(bucket);
  FloatBuffer& copy = copies_[node.node];
  if (!copy) copy = memory_.sums.Take();
  memory_.device.ToHost(std::as_bytes(node.sum.view().subspan(range.begin, range.size)),
                        std::as_writable_bytes(copy.view().subspan(range.begin, range.size)));
  memory_.device.Then([on_part = on_part_,
                       part = NodePart{.node = {.node = node.node, .sum = copy}, .bucket = bucket}](
                          const Status& copied) {
    if (copied) on_part(part);
  });
}

void DeviceTick::End(bool /*whole*/, TickOutput& output) {
  if (work_.kind == TickKind::kTrain) CopyNodes(accumulator_, memory_, output.nodes, copies_);
}

void DeviceTick::CopyNodes(const GradientAccumulator& accumulator, const Memory& memory,
                           std::vector<HeldNode>& nodes, Copies copies) {
  accumulator.CopySums(nodes);
  for (HeldNode& node : nodes) {
    FloatBuffer& copy = copies[node.node];
    if (!copy) {
      copy = memory.sums.Take();
      memory.device.ToHost(std::as_bytes(node.sum.view()), std::as_writable_bytes(copy.view()));
    }
    node.sum = copy;
  }
}

ShardSums DeviceTick::WithThatFollow(std::size_t task, ShardSums sums) const {
  const std::span<const double> written = sums_.subspan(kMaxSums * task, follow_[task]);
  if (written.empty()) return sums;
  sums.loss = written[0];
  sums.correct = written[1];
  if (written.size() > 2) sums.SetNamed(written.subspan(2));
  return sums;
}

void DeviceTick::Complete(TickOutput& output) const {
  for (std::size_t i = 0; i < output.shards.size(); ++i) {
    ShardResult& shard = output.shards[i];
    shard.sums = WithThatFollow(i, shard.sums);
    if (work_.measure && work_.kind == TickKind::kTrain) {
      shard.gradient_square =
          GradientSquare::OfLanes(lanes_.subspan(i * lanes_of_gradient_, lanes_of_gradient_));
    }
  }
  if (checked_)
    output.checked_shard = DigestOfShard(*checksum_, checked_->buffers,
                                         WithThatFollow(checked_->task, checked_->sums));
}

// ---- A whole step ----

void WholeDeviceTick::End(bool whole, TickOutput& output) {
  if (!whole) return DeviceTick::End(whole, output);
  std::vector<NodeIndex> nodes;
  std::vector<std::span<const float>> sums;
  for (const HeldNode& node : accumulator().finished()) {
    nodes.push_back(node.node);
    sums.emplace_back(node.sum.view());
  }
  output.mean = to().means.Take();
  to().device.Mean(LevelsOf(work().logical_shards, nodes), sums, work().device_step->divisor,
                   output.mean.view());
}

// ---- In rounds ----

void RoundsTick::Begin() {
  const DeviceStep& step = *work().device_step;
  mean_ = to().means.Take();
  blocks_of_step_ = step.rounds->own().size();
  begun_ = to().device.rounds();
  begun_->Begin({.plan = step.rounds,
                 .all_reduce = step.all_reduce,
                 .buckets = BucketLayout(mean_.view().size(), work().buckets),
                 .divisor = step.divisor,
                 .mean = mean_});
}

void RoundsTick::AbortExchange() const {
  to().device.rounds()->Abort([] {});
}

void RoundsTick::HandOut(const HeldNode& node, std::uint32_t bucket) {
  if (blocks_.empty() || blocks_.back().node != node.node) blocks_.push_back(node);
  // Blocks finish in order: a bucket that is final in the last one is final in all.
  if (blocks_.size() == blocks_of_step_) begun_->Add(blocks_, bucket);
}

void RoundsTick::End(bool whole, TickOutput& output) {
  if (!whole) return DeviceTick::End(whole, output);
  const std::uint32_t buckets = accumulator().buckets().count();
  if (work().blocks.empty())
    for (std::uint32_t bucket = 0; bucket < buckets; ++bucket) begun_->Add({}, bucket);
  output.mean = mean_;
}

}  // namespace pliant
