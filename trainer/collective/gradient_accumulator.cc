#include "trainer/collective/gradient_accumulator.h"

#include <algorithm>
#include <array>
#include <bit>
#include <utility>

#include "base/check.h"
#include "trainer/collective/float_environment.h"

namespace pliant {
namespace {

// A block of 2^a shards needs a partial sum for each of its a levels, and the leaf. A rank whose
// number of shards is not a power of two has blocks of decreasing size, and needs no more buffers
// than for the first.
std::size_t BuffersOfBlock(int shards) {
  return static_cast<std::size_t>(std::bit_width(static_cast<unsigned>(shards)));
}

}  // namespace

GradientAccumulator::GradientAccumulator(GradientCells cells, int max_shards, MemorySource& memory)
    : cells_(std::make_unique<const GradientCells>(std::move(cells))),
      arithmetic_(&HostArithmetic()),
      pool_(cells_->elements(), BuffersOfBlock(max_shards), memory) {}

GradientAccumulator::GradientAccumulator(GradientCells cells, int max_shards,
                                         GradientDevice& device)
    : cells_(std::make_unique<const GradientCells>(std::move(cells))),
      arithmetic_(&device),
      on_device_(true),
      pool_(cells_->elements(), BuffersOfBlock(max_shards), device.memory()) {}

Status GradientAccumulator::Populate(int shards) { return pool_.Populate(BuffersOfBlock(shards)); }

std::size_t GradientAccumulator::BytesFor(std::size_t elements, int shards) {
  return BuffersOfBlock(shards) * elements * sizeof(float);
}

void GradientAccumulator::Begin(int logical_shards, std::span<const ShardBlock> blocks,
                                const BucketSizes& sizes, bool measure) {
  logical_shards_ = logical_shards;
  measure_ = measure;
  measures_here_ = measure && !on_device_;
  finished_.clear();
  stack_.clear();
  spare_.clear();
  leaf_ = {};
  blocks_.assign(blocks.begin(), blocks.end());
  block_ = 0;
  shard_in_block_ = 0;
  layout_ = BucketLayout(pool_.buffer_size(), sizes);

  // Finished blocks keep one buffer each. With blocks of decreasing size, as AssignShards makes
  // them, the maximum is what the first one needs.
  std::size_t buffers = 0;
  for (std::size_t i = 0; i < blocks.size(); ++i)
    buffers = std::max(buffers, i + BuffersOfBlock(blocks[i].count));
  while (spare_.size() < buffers) spare_.push_back(pool_.Take());
  NextLeaf();
}

int GradientAccumulator::next_shard() const {
  CHECK(!done(), "a shard is left");
  return blocks_[block_].first + shard_in_block_;
}

HeldNode GradientAccumulator::block_node() const {
  CHECK(completes_block(), "the sums of a block are complete with its last leaf");
  return {.node = NodeOf(logical_shards_, blocks_[block_]), .sum = leaf_};
}

void GradientAccumulator::AccumulateReady(ElementRange range, const OnBucket& on_bucket) {
  CHECK(completes_block(), "the sums of a block are complete with its last leaf");
  if (range.size == 0) return;
  CHECK(range.end() <= layout_.elements(), "elements of the gradient");
  const std::uint32_t last = layout_.BucketOf(range.begin);
  for (std::uint32_t bucket = layout_.BucketOf(range.end() - 1); bucket <= last; ++bucket) {
    const ElementRange whole = layout_.RangeOf(bucket);
    const std::size_t ready =
        std::min(whole.end(), range.end()) - std::max(whole.begin, range.begin);
    CHECK(ready <= not_ready_[bucket], "an element becomes final once");
    not_ready_[bucket] -= ready;
    if (not_ready_[bucket] > 0) continue;
    AccumulateBucket(whole);
    on_bucket(bucket);
  }
}

void GradientAccumulator::AccumulateRest(const OnBucket& on_bucket) {
  CHECK(completes_block(), "the sums of a block are complete with its last leaf");
  for (std::uint32_t bucket = 0; bucket < layout_.count(); ++bucket) {
    if (std::exchange(not_ready_[bucket], 0) == 0) continue;
    AccumulateBucket(layout_.RangeOf(bucket));
    on_bucket(bucket);
  }
}

// The leaf is the last of its block, so every partial sum is the left sibling of the sum below it:
// left + (left + (left + leaf)). The result replaces the leaf. The partial sums stay valid in case
// the shard is not finished.
void GradientAccumulator::AccumulateBucket(ElementRange range) {
  const FloatEnvironment environment;  // this may be the program's thread
  if (measures_here_) square_.Add(leaf_.view(), range);
  if (stack_.empty()) return;
  const std::span<float> leaf = leaf_.view().subspan(range.begin, range.size);
  addends_.clear();
  for (const HeldNode& left : stack_)
    addends_.push_back(left.sum.view().subspan(range.begin, range.size));
  addends_.push_back(leaf);
  arithmetic_->AddUp(addends_, leaf);
}

std::span<const float> GradientAccumulator::left_sibling() const {
  if (completes_block() || stack_.empty() || measure_) return {};
  const NodeIndex leaf = NodeOf(logical_shards_, {.first = next_shard(), .count = 1});
  return stack_.back().node + 1 == leaf ? stack_.back().sum.view() : std::span<const float>();
}

NodeIndex GradientAccumulator::Accumulate(bool added) {
  CHECK(!added || !left_sibling().empty(), "it was added to something");
  if (completes_block()) {
    AccumulateRest([](std::uint32_t) {});
    if (measures_here_) leaf_square_ = square_.Sum();
    finished_.push_back(block_node());
    for (HeldNode& left : stack_) spare_.push_back(std::move(left.sum));
    stack_.clear();
    leaf_ = {};
    ++block_;
    shard_in_block_ = 0;
    NextLeaf();
    return finished_.back().node;
  }
  if (measures_here_) leaf_square_ = GradientSquare::Of(*cells_, leaf_.view());
  HeldNode sum{.node = NodeOf(logical_shards_, {.first = next_shard(), .count = 1}),
               .sum = std::move(leaf_)};
  while (!stack_.empty() && stack_.back().node + 1 == sum.node) {
    HeldNode left = std::move(stack_.back());
    stack_.pop_back();
    if (std::exchange(added, false)) {
      std::swap(left.sum, sum.sum);
    } else {
      arithmetic_->AddUp(std::array<std::span<const float>, 2>{left.sum.view(), sum.sum.view()},
                         left.sum.view());
    }
    spare_.push_back(std::move(sum.sum));
    sum = {.node = left.node / 2, .sum = std::move(left.sum)};
  }
  stack_.push_back(std::move(sum));
  ++shard_in_block_;
  NextLeaf();
  return 0;
}

void GradientAccumulator::CopySums(std::vector<HeldNode>& to) const {
  to.assign(finished_.begin(), finished_.end());
  to.insert(to.end(), stack_.begin(), stack_.end());
}

void GradientAccumulator::NextLeaf() {
  if (done()) return;
  CHECK(!spare_.empty(), "Begin took enough buffers");
  leaf_ = std::move(spare_.back());
  spare_.pop_back();
  if (!completes_block()) return;
  if (measures_here_) square_.Begin(*cells_);
  not_ready_.resize(layout_.count());
  for (std::uint32_t bucket = 0; bucket < layout_.count(); ++bucket)
    not_ready_[bucket] = layout_.RangeOf(bucket).size;
}

}  // namespace pliant
