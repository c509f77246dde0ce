#include <atomic>
#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "base/real_event_loop.h"
#include "trainer/runtime/compute.h"

namespace pliant {
namespace {

// The gradient of shard s is s + 1 everywhere; commits add it up.
class CountingProgram final : public Program {
 public:
  const ProgramInfo& info() const override { return info_; }
  Result<ShardSums> ComputeShard(const ShardTask& task, std::span<float> gradient,
                                 std::span<std::byte> buffers) override {
    ++shards_run;
    while (hold) std::this_thread::yield();
    if (task.shard == failing_shard) return Invalid("no such sample");
    for (float& element : gradient) element = static_cast<float>(task.shard + 1);
    for (std::byte& byte : buffers) byte = std::byte{42};
    return ShardSums{.samples = 1, .loss = static_cast<double>(task.shard)};
  }
  Status Commit(const CommitTask& task) override {
    total_ += task.gradient[0];
    return {};
  }
  StateDict State() override {
    return {{.name = "model.total", .bytes = std::as_writable_bytes(std::span(&total_, 1))}};
  }
  Status LoadedState() override { return {}; }

  std::atomic<int> shards_run = 0;
  std::atomic<bool> hold = false;
  int failing_shard = -1;

 private:
  ProgramInfo info_{.gradient_elements = 3, .buffer_bytes = 2, .name = "counting"};
  float total_ = 0;
};

constexpr int kShards = 4;

TickWork Work() {
  TickWork work{.blocks = {{.first = 0, .count = kShards}}};
  for (int shard = 0; shard < kShards; ++shard) {
    work.tasks.push_back({.shard = shard, .samples = {1}});
  }
  return work;
}

class ThreadedComputeTest : public testing::Test {
 protected:
  float Total(const std::shared_ptr<const StateCopy>& state) {
    float total = 0;
    std::memcpy(&total, state->view()[0].bytes.data(), sizeof(total));
    return total;
  }

  RealEventLoop loop_;
  CountingProgram program_;
  std::unique_ptr<Compute> compute_ = NewThreadedCompute(loop_, program_, kShards, kShards);
};

TEST_F(ThreadedComputeTest, RunsOneOperationAfterTheOther) {
  std::vector<HeldNode> nodes;
  const std::vector<float> gradient = {10, 10, 10};
  compute_->RunTick(
      Work(), [&](HeldNode node) { nodes.push_back(std::move(node)); },
      [&](Result<TickOutput> output) {
        ASSERT_TRUE(output);
        EXPECT_EQ(output->sums.size(), 4U);
        EXPECT_EQ(output->sums[3].loss, 3);
        ASSERT_EQ(output->buffers.view.size(), 2U);
        EXPECT_EQ(output->buffers.view[1], std::byte{42});
        ASSERT_EQ(nodes.size(), 1U) << "nodes come before the end";
        EXPECT_EQ(nodes[0].node, kRootNode);
        EXPECT_EQ(nodes[0].sum.view()[2], 1 + 2 + 3 + 4);
        compute_->Commit({.gradient = gradient}, [](Status status) { EXPECT_TRUE(status); });
        compute_->CopyState({}, [&](Result<std::shared_ptr<const StateCopy>> copy) {
          ASSERT_TRUE(copy);
          EXPECT_EQ(Total(*copy), 10) << "the commit before it is in the copy";
          compute_->Commit({.gradient = gradient}, [](Status) {});
          compute_->LoadState(*copy, [](Status status) { EXPECT_TRUE(status); });
        });
        compute_->CopyState({}, [&](Result<std::shared_ptr<const StateCopy>>) {
          compute_->CopyState({}, [&](Result<std::shared_ptr<const StateCopy>> copy) {
            EXPECT_EQ(Total(*copy), 10) << "loaded over the second commit";
            loop_.Stop();
          });
        });
      });
  loop_.Run();
}

TEST_F(ThreadedComputeTest, AnAbandonedTickIsNotHeardOfAgain) {
  program_.hold = true;
  bool next_done = false;
  compute_->RunTick(
      Work(), [](HeldNode) { ADD_FAILURE() << "a node of an abandoned tick"; },
      [](Result<TickOutput>) { ADD_FAILURE() << "the end of an abandoned tick"; });
  compute_->RunTick(
      Work(), [](HeldNode) { ADD_FAILURE() << "a node of an abandoned tick"; },
      [](Result<TickOutput>) { ADD_FAILURE() << "the end of an abandoned tick"; });
  while (program_.shards_run == 0) std::this_thread::yield();
  std::optional<TickOutput> rest;
  compute_->AbandonTick([&](TickOutput output) { rest = std::move(output); });
  compute_->RunTick(
      Work(), [](HeldNode) {},
      [&](Result<TickOutput> output) {
        EXPECT_TRUE(output);
        ASSERT_TRUE(rest) << "it came first";
        ASSERT_EQ(rest->sums.size(), 1U) << "its shard was finished";
        ASSERT_EQ(rest->nodes.size(), 1U);
        EXPECT_EQ(rest->nodes[0].node, NodeIndex{kShards});
        EXPECT_EQ(rest->nodes[0].sum.view()[2], 1) << "what comes later is written elsewhere";
        EXPECT_EQ(rest->buffers.view[0], std::byte{42});
        next_done = true;
        loop_.Stop();
      });
  program_.hold = false;
  loop_.Run();
  EXPECT_TRUE(next_done);
  EXPECT_EQ(program_.shards_run, 1 + kShards) << "the abandoned one ended after its shard";
}

TEST_F(ThreadedComputeTest, ACopyIsMadeBesideTheNextTickAndBeforeTheNextChange) {
  program_.hold = true;
  std::vector<std::string> order;
  const std::vector<float> gradient = {10, 10, 10};
  compute_->CopyState({}, [&](Result<std::shared_ptr<const StateCopy>> copy) {
    ASSERT_TRUE(copy);
    EXPECT_EQ(Total(*copy), 0) << "not what the commit after it made";
    order.emplace_back("copy");
    program_.hold = false;  // the tick waits for this
  });
  compute_->RunTick(
      Work(), [](HeldNode) {}, [&](Result<TickOutput>) { order.emplace_back("tick"); });
  compute_->Commit({.gradient = gradient}, [&](Status) { order.emplace_back("commit"); });
  compute_->CopyState({}, [&](Result<std::shared_ptr<const StateCopy>> copy) {
    EXPECT_EQ(Total(*copy), 10);
    loop_.Stop();
  });
  loop_.Run();
  EXPECT_EQ(order, (std::vector<std::string>{"copy", "tick", "commit"}));
}

TEST_F(ThreadedComputeTest, AnOperationWaitsForACopyOnlyIfItChangesTheState) {
  const std::vector<float> gradient = {10, 10, 10};
  int commits = 0;
  for (int i = 0; i < 100; ++i) {
    compute_->CopyState({}, [&, i](Result<std::shared_ptr<const StateCopy>> copy) {
      EXPECT_EQ(Total(*copy), 10 * i);
    });
    compute_->Commit({.gradient = gradient}, [&](Status) {
      if (++commits == 100) loop_.Stop();
    });
  }
  loop_.Run();
  EXPECT_EQ(commits, 100);
}

TEST_F(ThreadedComputeTest, ACopyOutlivesIt) {
  std::shared_ptr<const StateCopy> kept;
  compute_->CopyState({}, [&](Result<std::shared_ptr<const StateCopy>> copy) {
    kept = *copy;
    loop_.Stop();
  });
  loop_.Run();
  compute_.reset();
  EXPECT_EQ(Total(kept), 0);
}

TEST_F(ThreadedComputeTest, OfATickThatIsOverNothingIsLeftToGiveUp) {
  compute_->RunTick(
      Work(), [](HeldNode) {},
      [&](Result<TickOutput> output) {
        EXPECT_TRUE(output);
        compute_->AbandonTick([&](const TickOutput& rest) {
          EXPECT_TRUE(rest.sums.empty());
          loop_.Stop();
        });
      });
  loop_.Run();
}

TEST_F(ThreadedComputeTest, AProgramsErrorIsTheTicks) {
  program_.failing_shard = 2;
  compute_->RunTick(
      Work(), [](HeldNode) {},
      [&](Result<TickOutput> output) {
        ASSERT_FALSE(output);
        EXPECT_EQ(output.error(), (Error{ErrorCode::kInvalid, "no such sample"}));
        loop_.Stop();
      });
  loop_.Run();
}

TEST_F(ThreadedComputeTest, DestroyedItCallsNobody) {
  compute_->RunTick(
      Work(), [](HeldNode) { ADD_FAILURE(); }, [](Result<TickOutput>) { ADD_FAILURE(); });
  compute_.reset();
  loop_.Post([&] { loop_.Post([&] { loop_.Stop(); }); });
  loop_.Run();
}

}  // namespace
}  // namespace pliant
