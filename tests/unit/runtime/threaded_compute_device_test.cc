// Ticks whose gradients stay on a device and are exchanged in rounds.

#include <algorithm>
#include <chrono>
#include <functional>
#include <future>
#include <memory>
#include <new>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "base/real_event_loop.h"
#include "tests/unit/runtime/fake_gradient_device.h"
#include "trainer/checkpoint/checksum.h"
#include "trainer/protocol/spot_check.h"
#include "trainer/runtime/compute.h"
#include "trainer/runtime/gradient_place.h"
#include "trainer/runtime/program_thread.h"

namespace pliant {
namespace {

using std::chrono::milliseconds;

constexpr std::size_t kDeviceElements = 33;
constexpr int kDeviceShards = 4;

// The gradient of shard s is s + 1 everywhere.
class DeviceProgram final : public Program {
 public:
  explicit DeviceProgram(FakeGradientDevice& device) : device_(device) {}

  const ProgramInfo& info() const override { return info_; }
  GradientDevice* gradient_device() override { return &device_; }
  Result<ShardSums> ComputeShard(const ShardTask& task, std::span<float> gradient,
                                 std::span<std::byte>, GradientSink*) override {
    if (task.shard == throwing_shard) throw std::bad_alloc();
    std::ranges::fill(gradient, static_cast<float>(task.shard + 1));
    return ShardSums{.samples = 1};
  }
  Status Commit(const CommitTask&) override { return {}; }
  Status Evaluated(const EvaluationTask&) override { return {}; }
  StateDict State() override { return {}; }
  Status LoadedState() override { return {}; }

  int throwing_shard = -1;

 private:
  FakeGradientDevice& device_;
  ProgramInfo info_{.gradient_elements = kDeviceElements, .name = "on a device"};
};

class DeviceComputeTest : public testing::Test {
 protected:
  // The part of rank 0 of two: shards 0 and 1.
  static TickWork Part() {
    const ShardMap map = AssignShards(kDeviceShards, 2);
    TickWork work{.logical_shards = kDeviceShards,
                  .blocks = map.blocks_of_rank[0],
                  .tasks = {{.shard = 0, .samples = {1}}, {.shard = 1, .samples = {2}}},
                  .buckets = {.first = 1, .rest = 16}};
    work.device_step = DeviceStep{
        .divisor = 4, .rounds = std::make_shared<const ReductionPlan>(map, std::vector<int>{}, 0)};
    return work;
  }
  ~DeviceComputeTest() override {
    OnLoop([this] { compute_.reset(); });
    loop_.Post([this] { loop_.Stop(); });
  }
  // Does it on the loop's thread, and waits.
  void OnLoop(const std::function<void()>& task) {
    std::promise<void> done;
    loop_.Post([&] {
      task();
      done.set_value();
    });
    done.get_future().wait();
  }
  void RunPart() { Run(Part()); }
  void Run(const TickWork& work) {
    OnLoop([&] {
      ended_.reset();
      exchanged_.reset();
      compute_->RunTick(work, {[](const NodePart&) {},
                               [this](Result<TickOutput> output) { ended_ = std::move(output); },
                               [this](Status exchanged) { exchanged_ = std::move(exchanged); }});
    });
  }
  void Abort() {
    OnLoop([this] { compute_->AbortTick([this](const TickOutput& rest) { rest_ = rest; }); });
  }
  // Waits until it holds, looking each millisecond.
  bool Until(const std::function<bool()>& condition, int looks = 1000) {
    bool holds = false;
    for (; looks > 0 && !holds; --looks) {
      OnLoop([&] { holds = condition(); });
      if (!holds) std::this_thread::sleep_for(milliseconds(1));
    }
    return holds;
  }
  static std::vector<float> FirstOf(const std::vector<HeldNode>& nodes) {
    std::vector<float> values;
    for (const HeldNode& node : nodes) values.push_back(node.sum.view()[0]);
    return values;
  }

  RealEventLoop loop_;
  FakeGradientDevice device_;
  DeviceProgram program_{device_};
  std::unique_ptr<ProgramThread> thread_ = NewProgramThread(program_);
  std::unique_ptr<Compute> compute_ =
      NewThreadedCompute(loop_, *thread_, *MakeGradientPlace(program_, {.expected = 4, .ever = 4}));
  std::optional<Result<TickOutput>> ended_;
  std::optional<Status> exchanged_;
  std::optional<TickOutput> rest_;
  std::jthread loops_{[this] { loop_.Run(); }};  // last: it uses the rest
};

TEST_F(DeviceComputeTest, TheOwnPartIsOverBeforeTheExchange) {
  RunPart();
  ASSERT_TRUE(Until([&] { return ended_.has_value(); })) << "it waits for the other ranks";
  ASSERT_TRUE(*ended_) << ended_->error();
  EXPECT_EQ((*ended_)->shards.size(), 2U);
  EXPECT_TRUE((*ended_)->nodes.empty());
  OnLoop([this] { EXPECT_FALSE(exchanged_); });
  device_.exchange.End({});
  ASSERT_TRUE(Until([&] { return exchanged_.has_value(); }));
  EXPECT_TRUE(*exchanged_);
}

TEST_F(DeviceComputeTest, RoundsThatFailLeaveTheNodes) {
  RunPart();
  ASSERT_TRUE(Until([&] { return ended_.has_value(); }));
  device_.exchange.End(Fail(ErrorCode::kUnavailable, "a rank was lost"));
  ASSERT_TRUE(Until([&] { return exchanged_.has_value(); }));
  ASSERT_FALSE(*exchanged_);
  EXPECT_EQ(exchanged_->error().message, "a rank was lost");
  Abort();
  ASSERT_TRUE(Until([&] { return rest_.has_value(); }));
  EXPECT_EQ(FirstOf(rest_->nodes), std::vector<float>{3});
  EXPECT_EQ(rest_->shards.size(), 2U);
}

// The rounds read the sums until they are over.
TEST_F(DeviceComputeTest, AnAbortWaitsForTheEndOfTheExchange) {
  RunPart();
  ASSERT_TRUE(Until([&] { return ended_.has_value(); }));
  device_.exchange.aborts_end = false;
  Abort();
  EXPECT_EQ(device_.exchange.aborts, 1);
  EXPECT_FALSE(Until([&] { return rest_.has_value(); }, /*looks=*/30)) << "they are still read";
  device_.exchange.End(Fail(ErrorCode::kCancelled, "aborted"));
  ASSERT_TRUE(Until([&] { return rest_.has_value(); }));
  EXPECT_EQ(FirstOf(rest_->nodes), std::vector<float>{3});
  EXPECT_FALSE(exchanged_) << "an aborted tick calls back";
}

// The result of shard 1, from its owner and from another rank.
TEST_F(DeviceComputeTest, AShardIsCheckedOnTheDevice) {
  TickWork owners = Part();
  owners.device_step.reset();
  TickWork checkers = owners;
  owners.own_checked = 1;
  checkers.other_checked = checkers.tasks[1];
  checkers.tasks.pop_back();
  checkers.blocks = {{.first = 0, .count = 1}};
  std::vector<std::uint64_t> digests;
  for (TickWork* const work : {&owners, &checkers}) {
    Run(*work);
    ASSERT_TRUE(Until([&] { return ended_.has_value(); }));
    ASSERT_TRUE(*ended_) << ended_->error();
    ASSERT_TRUE((*ended_)->checked_shard);
    digests.push_back(*(*ended_)->checked_shard);
  }
  EXPECT_EQ(digests[0], digests[1]);
  const std::vector<float> gradient(kDeviceElements, 2);
  EXPECT_EQ(digests[0],
            DigestOfShard(ChecksumOf(std::as_bytes(std::span(gradient))), {}, {.samples = 1}));

  device_.has_memory = false;
  Run(checkers);
  ASSERT_TRUE(Until([&] { return ended_.has_value(); }));
  ASSERT_TRUE(*ended_) << ended_->error();
  EXPECT_FALSE((*ended_)->checked_shard) << "no memory for a check is no error";
}

TEST_F(DeviceComputeTest, ATickWhoseNodesAreSavedCanBeAborted) {
  RunPart();
  ASSERT_TRUE(Until([&] { return ended_.has_value(); }));
  device_.exchange.End(Fail(ErrorCode::kUnavailable, "a rank was lost"));
  ASSERT_TRUE(Until([&] { return exchanged_.has_value(); }));
  // The copies of the nodes take a while.
  device_.Hold(true);
  OnLoop([this] { compute_->AbortTick([](const TickOutput&) { FAIL() << "it was replaced"; }); });
  ASSERT_TRUE(Until([&] { return device_.waiting() > 0; }));
  Abort();
  OnLoop([this] { EXPECT_FALSE(rest_) << "they are not there yet"; });
  device_.Hold(false);
  ASSERT_TRUE(Until([&] { return rest_.has_value(); }));
  EXPECT_EQ(FirstOf(rest_->nodes), std::vector<float>{3});
}

TEST_F(DeviceComputeTest, AnErrorOfTheProgramEndsTheRounds) {
  program_.throwing_shard = 1;
  RunPart();
  ASSERT_TRUE(Until([&] { return ended_.has_value(); })) << "nobody aborts the rounds";
  EXPECT_EQ(ended_->error().code, ErrorCode::kUnavailable);
  EXPECT_EQ(device_.exchange.aborts, 1);
}

}  // namespace
}  // namespace pliant
