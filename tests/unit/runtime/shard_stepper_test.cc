#include "trainer/runtime/shard_stepper.h"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <optional>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "trainer/runtime/host_tick.h"

#if defined(__x86_64__)
#include <xmmintrin.h>
#endif

namespace pliant {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

constexpr int kShards = 4;

class OneParameter final : public ProgramView {
 public:
  const ProgramInfo& info() const override { return info_; }
  StateDict State() override { return {}; }
  Duration data_wait() const override { return waited; }

  Duration waited{100};

 private:
  const ProgramInfo info_{.gradient_elements = 2, .buffer_bytes = 1};
};

// All shards of a training tick on one learner. The shards in `empty` have no samples.
class ShardStepperTest : public testing::Test {
 protected:
  void Begin(const std::vector<int>& empty = {}, bool measure = false) {
    work_ = {.logical_shards = kShards,
             .blocks = {{.first = 0, .count = kShards}},
             .tasks = {},
             .measure = measure};
    for (int shard = 0; shard < kShards; ++shard) {
      work_.tasks.push_back({.shard = shard, .samples = {}});
      if (!std::ranges::contains(empty, shard)) work_.tasks.back().samples = {7};
    }
    accumulator_.Begin(work_.logical_shards, work_.blocks, work_.buckets, work_.measure);
    side_.emplace(accumulator_, buffers_, work_, control_,
                  [this](const NodePart& part) { parts_.push_back(part.node.node); });
    stepper_.emplace(program_, accumulator_, work_, control_, *side_);
  }
  // The shard to compute next.
  std::optional<int> Next() {
    const auto work = stepper_->Next();
    if (!work) return std::nullopt;
    shard_ = std::get<ShardWork>(*work);
    return shard_.task->shard;
  }
  void Answer(float gradient) {
    std::ranges::fill(shard_.gradient, gradient);
    stepper_->Done(ShardSums{.samples = 1, .loss = gradient});
  }
  std::vector<double> Losses() const {
    std::vector<double> losses;
    for (const ShardResult& shard : output_.shards) losses.push_back(shard.sums.loss);
    return losses;
  }

  OneParameter program_;
  GradientAccumulator accumulator_{2, kShards};
  BytePool buffers_{0};
  TickWork work_;
  TickControl control_;
  std::optional<HostTick> side_;
  std::optional<ShardStepper> stepper_;
  ShardWork shard_{.gradient = {}, .buffers = {}, .left = {}};
  std::vector<NodeIndex> parts_;  // nodes of the reported parts
  TickOutput output_;
};

TEST_F(ShardStepperTest, GivesShardByShard) {
  Begin();
  struct Want {
    bool buffers;
    bool left;
    bool sink;
  };
  const std::vector<Want> shards = {{.buffers = true, .left = false, .sink = false},
                                    {.buffers = false, .left = true, .sink = false},
                                    {.buffers = false, .left = false, .sink = false},
                                    {.buffers = false, .left = false, .sink = true}};
  for (int shard = 0; shard < kShards; ++shard) {
    SCOPED_TRACE(shard);
    const Want& want = shards[static_cast<std::size_t>(shard)];
    EXPECT_FALSE(stepper_->over());
    ASSERT_EQ(Next(), shard);
    EXPECT_EQ(!shard_.buffers.empty(), want.buffers);
    EXPECT_EQ(!shard_.left.empty(), want.left);
    EXPECT_EQ(shard_.added != nullptr, want.left);
    EXPECT_EQ(shard_.sink != nullptr, want.sink);
    program_.waited += Duration(1);
    Answer(static_cast<float>(shard + 1));
  }
  EXPECT_TRUE(stepper_->over());
  EXPECT_EQ(Next(), std::nullopt);
  EXPECT_TRUE(stepper_->End(output_));
  EXPECT_THAT(Losses(), ElementsAre(1, 2, 3, 4));
  EXPECT_THAT(parts_, ElementsAre(1)) << "the root node";
  ASSERT_EQ(output_.nodes.size(), 1);
  EXPECT_THAT(output_.nodes[0].sum.view(), ElementsAre(10, 10));
  EXPECT_EQ(output_.buffers.view.size(), 1);
  EXPECT_EQ(output_.data_wait, Duration(4));
}

TEST_F(ShardStepperTest, MeasuresEveryLeaf) {
  Begin({2}, /*measure=*/true);
  while (const auto shard = Next()) {
    EXPECT_TRUE(shard_.left.empty()) << "the gradient is not added to another before it was seen";
    EXPECT_EQ(shard_.sink != nullptr, *shard == 3) << "buckets are handed out as always";
    Answer(static_cast<float>(*shard + 1));
  }
  EXPECT_TRUE(stepper_->End(output_));
  std::vector<double> squares;
  for (const ShardResult& shard : output_.shards) squares.push_back(shard.gradient_square);
  EXPECT_THAT(squares, ElementsAre(2, 8, 0, 32));
  EXPECT_THAT(output_.nodes[0].sum.view(), ElementsAre(7, 7)) << "the sums are the same";
}

TEST_F(ShardStepperTest, DoesNotAskForShardsWithoutSamples) {
  for (const auto& [empty, asked, sum] :
       {std::tuple(std::vector{0}, std::vector{1, 2, 3}, 3.0F),
        std::tuple(std::vector{2, 3}, std::vector{0, 1}, 2.0F),
        std::tuple(std::vector{1, 3}, std::vector{0, 2}, 2.0F),
        std::tuple(std::vector{0, 1, 2, 3}, std::vector<int>(), 0.0F)}) {
    Begin(empty);
    std::vector<int> given;
    while (const auto shard = Next()) {
      given.push_back(*shard);
      Answer(1);
    }
    EXPECT_EQ(given, asked);
    EXPECT_TRUE(stepper_->End(output_));
    EXPECT_EQ(output_.shards.size(), kShards);
    ASSERT_EQ(output_.nodes.size(), 1);
    EXPECT_THAT(output_.nodes[0].sum.view(), ElementsAre(sum, sum));
  }
}

TEST_F(ShardStepperTest, EmptyShardsAtTheEndWaitForNobody) {
  Begin({2, 3});
  Next();
  Answer(1);
  Next();
  Answer(1);
  EXPECT_TRUE(stepper_->over());
  EXPECT_THAT(parts_, ElementsAre(1));
}

TEST_F(ShardStepperTest, AbandonedItEndsAfterTheShardUnderWay) {
  Begin();
  Next();
  Answer(1);
  Next();
  control_.abandoned = true;
  Answer(2);
  EXPECT_TRUE(stepper_->over());
  EXPECT_EQ(Next(), std::nullopt);
  EXPECT_EQ(stepper_->End(output_).error().code, ErrorCode::kCancelled);
  EXPECT_THAT(Losses(), ElementsAre(1, 2)) << "finished shards are kept";
  ASSERT_EQ(output_.nodes.size(), 1);
  EXPECT_THAT(output_.nodes[0].sum.view(), ElementsAre(3, 3));
  EXPECT_THAT(parts_, IsEmpty());
}

TEST_F(ShardStepperTest, AbandonedAfterTheLastItIsWhole) {
  Begin();
  while (Next()) Answer(1);
  control_.abandoned = true;
  EXPECT_TRUE(stepper_->End(output_));
}

TEST_F(ShardStepperTest, AnErrorEndsIt) {
  Begin();
  Next();
  Answer(1);
  Next();
  stepper_->Done(Invalid("no such sample"));
  EXPECT_TRUE(stepper_->over());
  EXPECT_EQ(stepper_->End(output_), Status(Invalid("no such sample")));
  EXPECT_THAT(Losses(), ElementsAre(1));
}

#if defined(__x86_64__)
// The program's thread may flush denormals to zero; sums of gradients never do.
TEST_F(ShardStepperTest, SumsHaveTheirBitsOnAnyThread) {
  constexpr float kSmall = std::numeric_limits<float>::denorm_min();
  Begin({2, 3});
  const unsigned before = _mm_getcsr();
  _mm_setcsr(before | 0x8040);  // FTZ and DAZ
  Next();
  Answer(kSmall);
  Next();
  Answer(kSmall);
  _mm_setcsr(before);
  EXPECT_TRUE(stepper_->End(output_));
  const float sum = output_.nodes[0].sum.view()[0];
  EXPECT_EQ(sum, 2 * kSmall);
}
#endif

}  // namespace
}  // namespace pliant
