#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstring>
#include <ctime>
#include <functional>
#include <memory>
#include <new>
#include <optional>
#include <set>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "base/exceptions.h"
#include "base/real_event_loop.h"
#include "trainer/collective/buffer_pool.h"
#include "trainer/runtime/compute.h"
#include "trainer/runtime/host_gradients.h"
#include "trainer/runtime/program_thread.h"
#include "trainer/runtime/pulled_thread.h"

namespace pliant {
namespace {

constexpr std::size_t kElements = 33;  // buckets of 1, 16 and 16

// The gradient of shard s is s + 1 everywhere; commits add it up.
class CountingProgram final : public Program {
 public:
  const ProgramInfo& info() const override { return info_; }
  Result<ShardSums> ComputeShard(const ShardTask& task, std::span<float> gradient,
                                 std::span<std::byte> buffers, GradientSink* sink) override {
    ++shards_run;
    if (sink != nullptr) ++sinks_given;
    const std::size_t expected = task.shard == 0 ? info_.buffer_bytes : 0;
    if (buffers.size() != expected) return Invalid("only shard 0 has buffers");
    std::this_thread::sleep_for(shard_time);
    while (hold || hold_shard == task.shard) std::this_thread::yield();
    if (task.shard == failing_shard) return Invalid("no such sample");
    if (task.shard == throwing_shard) throw std::bad_alloc();
    for (float& element : gradient) element = static_cast<float>(task.shard + 1);
    if (sink != nullptr && says_last) {
      sink->OnReady({.begin = gradient.size() - 1, .size = 1});
      while (hold_after_saying) std::this_thread::yield();
      if (fails_after_saying) return Invalid("a number that is none");
    }
    for (std::byte& byte : buffers) byte = std::byte{42};
    return ShardSums{.samples = 1, .loss = static_cast<double>(task.shard)};
  }
  Status Commit(const CommitTask& task) override {
    committing = true;
    while (hold_commit) std::this_thread::yield();
    if (throws_in_commit) throw std::runtime_error("what a library throws");
    total_ += task.gradient[0];
    ++commits;
    return {};
  }
  Status Evaluated(const EvaluationTask& task) override {
    total_ += static_cast<float>(task.sums.loss);
    return {};
  }
  ProgramWishes wishes() const override {
    if (throws_in_wishes) throw std::bad_alloc();
    return {.end = total_ > 11};
  }
  StateDict State() override {
    return {{.name = "model.total", .bytes = std::as_writable_bytes(std::span(&total_, 1))}};
  }
  Status LoadedState() override { return {}; }

  float total() const { return total_; }

  std::atomic<int> shards_run = 0;
  std::atomic<int> sinks_given = 0;
  std::atomic<int> commits = 0;
  std::chrono::milliseconds shard_time{0};
  std::atomic<bool> hold = false;
  std::atomic<int> hold_shard = -1;
  std::atomic<bool> hold_commit = false;
  std::atomic<bool> committing = false;
  bool says_last = false;  // reports that the last element is final
  std::atomic<bool> hold_after_saying = false;
  bool fails_after_saying = false;
  int failing_shard = -1;
  int throwing_shard = -1;
  bool throws_in_commit = false;
  bool throws_in_wishes = false;

 private:
  ProgramInfo info_{.gradient_elements = kElements, .buffer_bytes = 2, .name = "counting"};
  float total_ = 0;
};

FloatBuffer Filled(float value) {
  FloatBuffer buffer(kElements);
  std::ranges::fill(buffer.view(), value);
  return buffer;
}

constexpr int kShards = 4;

TickWork Work() {
  TickWork work{.logical_shards = kShards,
                .blocks = {{.first = 0, .count = kShards}},
                .buckets = {.first = 1, .rest = 16}};
  for (int shard = 0; shard < kShards; ++shard) {
    work.tasks.push_back({.shard = shard, .samples = {1}});
  }
  return work;
}

// Runs the program on a thread, or fetches its work for it.
class ComputeThread {
 public:
  ComputeThread(Program& program, bool pulled) : pulled_thread_(program) {
    if (!pulled) {
      calling_thread_ = NewProgramThread(program);
      return;
    }
    puller_ = std::jthread([this, &program] {
      while (pulled_thread_.Next(std::nullopt)) {
        pulled_thread_.Answer(CatchAll([&] { return Call(program, *pulled_thread_.work()); }));
      }
    });
  }
  ~ComputeThread() { pulled_thread_.End(); }

  ProgramThread& operator*() {
    return calling_thread_ ? *calling_thread_ : static_cast<ProgramThread&>(pulled_thread_);
  }

 private:
  std::unique_ptr<ProgramThread> calling_thread_;
  PulledThread pulled_thread_;
  std::jthread puller_;  // last: joined before the other members are destroyed
};

class ThreadedComputeTest : public testing::TestWithParam<bool> {
 protected:
  float Total(const std::shared_ptr<const StateCopy>& state) {
    float total = 0;
    std::memcpy(&total, state->view()[0].bytes.data(), sizeof(total));
    return total;
  }

  RealEventLoop loop_;
  CountingProgram program_;
  ComputeThread thread_{program_, GetParam()};
  std::unique_ptr<Compute> compute_ = NewThreadedCompute(
      loop_, *thread_, std::make_unique<HostGradients>(GradientAccumulator(kElements, kShards)));
};

INSTANTIATE_TEST_SUITE_P(Threads, ThreadedComputeTest, testing::Bool(), [](const auto& pulled) {
  return std::string(pulled.param ? "Pulled" : "Calling");
});

TEST_P(ThreadedComputeTest, TellsWhetherTheStateIsTheLastOne) {
  const FloatBuffer gradient = Filled(10);
  std::vector<bool> wanted;
  std::shared_ptr<const StateCopy> first;
  const auto note = [&](const auto& status) {
    EXPECT_TRUE(status.has_value());
    wanted.push_back(compute_->wishes().end);
  };
  compute_->CopyState({}, [&](auto state) { first = *state; });
  compute_->Commit({.mean = {.values = gradient}}, note);
  compute_->Evaluated({.sums = {.samples = 1, .loss = 5}}, [&](Status status) {
    note(std::move(status));
    compute_->LoadState(first, [&](Status loaded) {
      note(std::move(loaded));
      loop_.Stop();
    });
  });
  loop_.Run();
  EXPECT_EQ(wanted, (std::vector{false, true, false}));
}

TEST_P(ThreadedComputeTest, RunsOneOperationAfterTheOther) {
  std::vector<NodePart> parts;
  const FloatBuffer gradient = Filled(10);
  compute_->RunTick(
      Work(), {[&](const NodePart& part) { parts.push_back(part); },
               [&](Result<TickOutput> output) {
                 ASSERT_TRUE(output);
                 EXPECT_EQ(output->shards.size(), 4U);
                 EXPECT_EQ(output->shards[3].sums.loss, 3);
                 ASSERT_EQ(output->buffers.view.size(), 2U);
                 EXPECT_EQ(output->buffers.view[1], std::byte{42});
                 ASSERT_EQ(parts.size(), 3U) << "all parts come before the end";
                 for (std::uint32_t i = 0; i < 3; ++i) {
                   EXPECT_EQ(parts[i].node.node, kRootNode);
                   EXPECT_EQ(parts[i].bucket, i);
                   for (const float element : parts[i].node.sum.view())
                     EXPECT_EQ(element, 1 + 2 + 3 + 4);
                 }
                 compute_->Commit({.mean = {.values = gradient}},
                                  [](const auto& status) { EXPECT_TRUE(status); });
                 compute_->CopyState({}, [&](Result<std::shared_ptr<const StateCopy>> copy) {
                   ASSERT_TRUE(copy);
                   EXPECT_EQ(Total(*copy), 10) << "the copy includes the earlier commit";
                   compute_->Commit({.mean = {.values = gradient}}, [](const auto&) {});
                   compute_->LoadState(*copy, [](Status status) { EXPECT_TRUE(status); });
                 });
                 compute_->CopyState({}, [&](Result<std::shared_ptr<const StateCopy>>) {
                   compute_->CopyState({}, [&](Result<std::shared_ptr<const StateCopy>> copy) {
                     EXPECT_EQ(Total(*copy), 10) << "loaded over the second commit";
                     loop_.Stop();
                   });
                 });
               }});
  loop_.Run();
}

TEST_P(ThreadedComputeTest, TheProgramSaysWhatIsFinalEarlyIfSomebodyWaitsForIt) {
  int parts = 0;
  const auto run = [&](bool early, std::function<void()> next) {
    TickWork work = Work();
    work.parts_early = early;
    compute_->RunTick(std::move(work), {[&](const NodePart&) { ++parts; },
                                        [&, next](const Result<TickOutput>& output) {
                                          EXPECT_EQ(output->nodes.at(0).sum.view()[0],
                                                    1 + 2 + 3 + 4);
                                          next();
                                        }});
  };
  run(false, [&] {
    EXPECT_EQ(program_.sinks_given, 0);
    EXPECT_EQ(parts, 3) << "all parts come at the end";
    run(true, [&] {
      EXPECT_EQ(program_.sinks_given, 1) << "only the block's last shard has a sink";
      EXPECT_EQ(parts, 6);
      loop_.Stop();
    });
  });
  loop_.Run();
  EXPECT_EQ(parts, 6);
}

// The loop waits for the tick, the copy thread for a copy, and the compute thread for the program.
TEST_P(ThreadedComputeTest, WaitsTakeNoProcessor) {
  const auto processor_time = [] {
    timespec used{};
    EXPECT_EQ(::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used), 0);
    return std::chrono::seconds(used.tv_sec) + std::chrono::nanoseconds(used.tv_nsec);
  };
  program_.shard_time = std::chrono::milliseconds(100);
  const auto before = processor_time();
  compute_->RunTick(Work(),
                    {[](const NodePart&) {}, [&](const Result<TickOutput>&) { loop_.Stop(); }});
  loop_.Run();
  EXPECT_LT(processor_time() - before, std::chrono::milliseconds(200)) << "of 400";
}

TEST_P(ThreadedComputeTest, AnAbandonedTickIsNotHeardOfAgain) {
  program_.hold = true;
  bool next_done = false;
  compute_->RunTick(Work(),
                    {[](const NodePart&) { ADD_FAILURE() << "a part of an aborted tick"; },
                     [](Result<TickOutput>) { ADD_FAILURE() << "the end of an aborted tick"; }});
  compute_->RunTick(Work(),
                    {[](const NodePart&) { ADD_FAILURE() << "a part of an aborted tick"; },
                     [](Result<TickOutput>) { ADD_FAILURE() << "the end of an aborted tick"; }});
  while (program_.shards_run == 0) std::this_thread::yield();
  std::optional<TickOutput> rest;
  compute_->AbortTick([&](TickOutput output) { rest = std::move(output); });
  compute_->RunTick(Work(), {[](const NodePart&) {},
                             [&](Result<TickOutput> output) {
                               EXPECT_TRUE(output);
                               ASSERT_TRUE(rest) << "it came first";
                               ASSERT_EQ(rest->shards.size(), 1U) << "its shard was finished";
                               ASSERT_EQ(rest->nodes.size(), 1U);
                               EXPECT_EQ(rest->nodes[0].node, NodeIndex{kShards});
                               EXPECT_EQ(rest->nodes[0].sum.view()[2], 1)
                                   << "later results are written elsewhere";
                               EXPECT_EQ(rest->buffers.view[0], std::byte{42});
                               next_done = true;
                               loop_.Stop();
                             }});
  program_.hold = false;
  loop_.Run();
  EXPECT_TRUE(next_done);
  EXPECT_EQ(program_.shards_run, 1 + kShards) << "the aborted tick ended after its shard";
}

// Wherever a shard stands in its block, and whoever computes it.
TEST_P(ThreadedComputeTest, AShardHasOneDigestOnAllThatComputeIt) {
  std::vector<TickOutput> outputs;
  const auto run = [&](TickWork work) {
    compute_->RunTick(std::move(work), {[](const NodePart&) {},
                                        [&](const Result<TickOutput>& output) {
                                          if (!output) loop_.Stop();
                                          ASSERT_TRUE(output);
                                          outputs.push_back(*output);
                                          if (outputs.size() == 1 + 2 * kShards) loop_.Stop();
                                        }});
  };
  run(Work());
  for (int shard = 0; shard < kShards; ++shard) {
    TickWork owners = Work();
    owners.own_checked = shard;
    run(std::move(owners));
    TickWork checkers = Work();
    checkers.blocks.clear();
    checkers.other_checked = checkers.tasks[static_cast<std::size_t>(shard)];
    checkers.tasks.clear();
    run(std::move(checkers));
  }
  loop_.Run();
  EXPECT_EQ(program_.shards_run, kShards + kShards * (kShards + 1));
  EXPECT_FALSE(outputs[0].checked_shard);
  std::set<std::uint64_t> digests;
  for (std::size_t shard = 0; shard < kShards; ++shard) {
    SCOPED_TRACE(shard);
    const TickOutput& owner = outputs[1 + 2 * shard];
    ASSERT_EQ(owner.nodes.size(), 1U);
    EXPECT_EQ(owner.nodes[0].sum.view()[2], 10) << "the sum is as ever";
    const TickOutput& checker = outputs[2 + 2 * shard];
    EXPECT_TRUE(checker.shards.empty());
    EXPECT_TRUE(checker.nodes.empty());
    ASSERT_TRUE(owner.checked_shard);
    EXPECT_EQ(owner.checked_shard, checker.checked_shard);
    digests.insert(*owner.checked_shard);
  }
  EXPECT_EQ(digests.size(), kShards);
}

TEST_P(ThreadedComputeTest, AShardThatIsCheckedComesAfterTheOwnAndMayFail) {
  TickWork work = Work();
  work.other_checked = work.tasks[3];
  work.tasks.pop_back();
  work.blocks = {{.first = 0, .count = 2}, {.first = 2, .count = 1}};
  program_.failing_shard = 3;
  compute_->RunTick(std::move(work), {[](const NodePart&) {},
                                      [&](const Result<TickOutput>& output) {
                                        ASSERT_FALSE(output);
                                        EXPECT_EQ(output.error().message, "no such sample");
                                        loop_.Stop();
                                      }});
  loop_.Run();
  EXPECT_EQ(program_.shards_run, kShards);
}

TEST_P(ThreadedComputeTest, NothingOfATickIsLeftInTheNext) {
  program_.hold = true;
  TickWork with_all = Work();
  with_all.check_state = true;
  compute_->RunTick(std::move(with_all),
                    {[](const NodePart&) {}, [](const Result<TickOutput>&) {}});
  while (program_.shards_run == 0) std::this_thread::yield();
  compute_->AbortTick([](const TickOutput& rest) {
    EXPECT_TRUE(rest.state);
    EXPECT_FALSE(rest.buffers.view.empty());
  });
  TickWork with_less = Work();
  with_less.blocks = {{.first = 2, .count = 2}};
  with_less.tasks.erase(with_less.tasks.begin(), with_less.tasks.begin() + 2);
  compute_->RunTick(std::move(with_less), {[](const NodePart&) {},
                                           [&](const Result<TickOutput>& output) {
                                             ASSERT_TRUE(output);
                                             EXPECT_FALSE(output->state);
                                             EXPECT_TRUE(output->buffers.view.empty());
                                             EXPECT_EQ(output->shards.size(), 2U);
                                             EXPECT_EQ(output->nodes.size(), 1U);
                                             loop_.Stop();
                                           }});
  program_.hold = false;
  loop_.Run();
}

TEST_P(ThreadedComputeTest, MeasuresOnlyTheGradientsOfMeasuredCommits) {
  const FloatBuffer gradient = Filled(3);
  std::vector<double> squares;
  const auto note = [&](const Result<CommitOutput>& output) {
    ASSERT_TRUE(output);
    squares.push_back(output->gradient_square);
  };
  compute_->Commit({.mean = {.values = gradient}}, note);
  compute_->Commit({.mean = {.values = gradient}, .measure = true}, [&](const auto& output) {
    note(output);
    loop_.Stop();
  });
  loop_.Run();
  EXPECT_EQ(squares, (std::vector<double>{0, 9.0 * kElements}));
}

TEST_P(ThreadedComputeTest, SaysWhatTheProgramIsAt) {
  EXPECT_EQ(compute_->call(), std::nullopt);
  program_.hold_shard = 2;
  program_.hold_commit = true;
  const FloatBuffer gradient = Filled(10);
  TickWork last_two = Work();
  last_two.blocks = {{.first = 2, .count = 2}};
  last_two.tasks.erase(last_two.tasks.begin(), last_two.tasks.begin() + 2);
  last_two.step = 16;
  compute_->RunTick(
      std::move(last_two),
      {[](const NodePart&) {},
       [&](const Result<TickOutput>&) {
         EXPECT_EQ(compute_->call(), std::nullopt) << "the call has returned";
         compute_->Commit({.step = 16, .mean = {.values = gradient}},
                          [&](const auto&) { loop_.Stop(); });
         loop_.Post([&] {
           EXPECT_EQ(compute_->call(),
                     (ProgramCall{.kind = ProgramCall::Kind::kCommit, .number = 2, .step = 16}));
           program_.hold_commit = false;
         });
       }});
  const auto shard = [](int number) {
    return ProgramCall{.kind = ProgramCall::Kind::kTrain, .number = 1, .step = 16, .shard = number};
  };
  while (program_.shards_run < 1) std::this_thread::yield();
  EXPECT_EQ(compute_->call(), shard(2));
  program_.hold_shard = 3;
  while (program_.shards_run < 2) std::this_thread::yield();
  EXPECT_EQ(compute_->call(), shard(3));
  program_.hold_shard = -1;
  loop_.Run();
  EXPECT_EQ(compute_->call(), std::nullopt);
}

TEST_P(ThreadedComputeTest, ACopyIsMadeDuringTheNextTickAndBeforeTheNextChange) {
  program_.hold = true;
  std::vector<std::string> order;
  const FloatBuffer gradient = Filled(10);
  compute_->CopyState({}, [&](Result<std::shared_ptr<const StateCopy>> copy) {
    ASSERT_TRUE(copy);
    EXPECT_EQ(Total(*copy), 0) << "without the later commit";
    order.emplace_back("copy");
    program_.hold = false;  // the tick waits for this
  });
  compute_->RunTick(
      Work(), {[](const NodePart&) {}, [&](Result<TickOutput>) { order.emplace_back("tick"); }});
  compute_->Commit({.mean = {.values = gradient}},
                   [&](const auto&) { order.emplace_back("commit"); });
  compute_->CopyState({}, [&](Result<std::shared_ptr<const StateCopy>> copy) {
    EXPECT_EQ(Total(*copy), 10);
    loop_.Stop();
  });
  loop_.Run();
  EXPECT_EQ(order, (std::vector<std::string>{"copy", "tick", "commit"}));
}

TEST_P(ThreadedComputeTest, AnOperationWaitsForACopyOnlyIfItChangesTheState) {
  const FloatBuffer gradient = Filled(10);
  int commits = 0;
  for (int i = 0; i < 100; ++i) {
    compute_->CopyState({}, [&, i](Result<std::shared_ptr<const StateCopy>> copy) {
      EXPECT_EQ(Total(*copy), 10 * i);
    });
    compute_->Commit({.mean = {.values = gradient}}, [&](const auto&) {
      if (++commits == 100) loop_.Stop();
    });
  }
  loop_.Run();
  EXPECT_EQ(commits, 100);
}

TEST_P(ThreadedComputeTest, ACopyOutlivesIt) {
  std::shared_ptr<const StateCopy> kept;
  compute_->CopyState({}, [&](Result<std::shared_ptr<const StateCopy>> copy) {
    kept = *copy;
    loop_.Stop();
  });
  loop_.Run();
  compute_.reset();
  EXPECT_EQ(Total(kept), 0);
}

TEST_P(ThreadedComputeTest, AnAbortOfATickThatIsOverLeavesNothing) {
  compute_->RunTick(Work(), {[](const NodePart&) {},
                             [&](Result<TickOutput> output) {
                               EXPECT_TRUE(output);
                               compute_->AbortTick([&](const TickOutput& rest) {
                                 EXPECT_TRUE(rest.shards.empty());
                                 loop_.Stop();
                               });
                             }});
  loop_.Run();
}

// The program continues only when the loop has received its first bucket. This would never happen
// if a bucket waited for the end of its shard.
TEST_P(ThreadedComputeTest, ABucketLeavesBeforeItsShardIsDone) {
  program_.says_last = true;
  program_.hold_after_saying = true;
  std::vector<std::uint32_t> buckets;
  compute_->RunTick(
      Work(), {[&](const NodePart& part) {
                 buckets.push_back(part.bucket);
                 const auto range = BucketLayout(kElements, Work().buckets).RangeOf(part.bucket);
                 for (const float element : part.node.sum.view().subspan(range.begin, range.size)) {
                   EXPECT_EQ(element, 1 + 2 + 3 + 4);
                 }
                 program_.hold_after_saying = false;
               },
               [&](Result<TickOutput> output) {
                 EXPECT_TRUE(output);
                 loop_.Stop();
               }});
  loop_.Run();
  EXPECT_EQ(buckets, (std::vector<std::uint32_t>{0, 1, 2}));
}

TEST_P(ThreadedComputeTest, AnAbortAfterABucketStopsTheTick) {
  program_.says_last = true;
  program_.hold_after_saying = true;
  int parts = 0;
  std::size_t rest_shards = 0;
  compute_->RunTick(
      Work(),
      {[&](const NodePart&) {
         ++parts;
         compute_->AbortTick([&](const TickOutput& rest) { rest_shards = rest.shards.size(); });
         program_.says_last = false;
         program_.hold_after_saying = false;
         compute_->RunTick(Work(), {[&](const NodePart&) { ++parts; },
                                    [&](Result<TickOutput> output) {
                                      EXPECT_TRUE(output);
                                      EXPECT_EQ(rest_shards, std::size_t{kShards})
                                          << "its last shard was being computed";
                                      loop_.Stop();
                                    }});
       },
       [](Result<TickOutput>) { ADD_FAILURE() << "the end of an aborted tick"; }});
  loop_.Run();
  EXPECT_EQ(parts, 1 + 3);
}

TEST_P(ThreadedComputeTest, AProgramThatFailsAfterABucketFailsTheTick) {
  program_.says_last = true;
  program_.fails_after_saying = true;
  int parts = 0;
  compute_->RunTick(Work(), {[&](const NodePart&) { ++parts; },
                             [&](Result<TickOutput> output) {
                               EXPECT_FALSE(output);
                               loop_.Stop();
                             }});
  loop_.Run();
  EXPECT_EQ(parts, 1);
}

TEST_P(ThreadedComputeTest, AProgramsErrorIsTheTicks) {
  program_.failing_shard = 2;
  compute_->RunTick(Work(), {[](const NodePart&) {},
                             [&](Result<TickOutput> output) {
                               ASSERT_FALSE(output);
                               EXPECT_EQ(output.error(),
                                         (Error{ErrorCode::kInvalid, "no such sample"}));
                               loop_.Stop();
                             }});
  loop_.Run();
}

TEST_P(ThreadedComputeTest, AnExceptionIsTheErrorOfTheOperation) {
  program_.throwing_shard = 2;
  program_.throws_in_commit = true;
  const FloatBuffer gradient = Filled(10);
  std::vector<Error> heard;
  compute_->RunTick(Work(),
                    {[](const NodePart&) {},
                     [&](const Result<TickOutput>& output) { heard.push_back(output.error()); }});
  compute_->Commit({.mean = {.values = gradient}}, [&](const auto& status) {
    heard.push_back(status.error());
    loop_.Stop();
  });
  loop_.Run();
  EXPECT_EQ(heard, (std::vector<Error>{{ErrorCode::kUnavailable, "out of memory"},
                                       {ErrorCode::kInternal, "what a library throws"}}));
}

// A state larger than the memory.
class EndlessProgram final : public Program {
 public:
  const ProgramInfo& info() const override { return info_; }
  Result<ShardSums> ComputeShard(const ShardTask&, std::span<float>, std::span<std::byte>,
                                 GradientSink*) override {
    return ShardSums{};
  }
  Status Commit(const CommitTask&) override { return {}; }
  StateDict State() override {
    return {{.name = "model.endless", .bytes = {&byte_, std::size_t{1} << 62}}};
  }
  Status LoadedState() override { return {}; }

 private:
  const ProgramInfo info_{};
  std::byte byte_{};
};

TEST_P(ThreadedComputeTest, ACopyForWhichThereIsNoMemoryIsAnError) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "the sanitizers' allocator aborts the process";
#endif
  EndlessProgram program;
  ComputeThread thread(program, GetParam());
  const auto compute = NewThreadedCompute(
      loop_, *thread, std::make_unique<HostGradients>(GradientAccumulator(kElements, kShards)));
  Error heard;
  compute->CopyState({}, [&](const Result<std::shared_ptr<const StateCopy>>& copy) {
    heard = copy.error();
    loop_.Stop();
  });
  loop_.Run();
  EXPECT_EQ(heard, (Error{ErrorCode::kUnavailable, "out of memory"}));
}

// As at a second Ctrl-C: the requester of the commit is destroyed while the program runs it.
TEST_P(ThreadedComputeTest, AGradientIsKeptUntilItIsCommitted) {
  program_.hold_commit = true;
  std::optional<FloatBuffer> gradient = Filled(10);
  const std::weak_ptr<float[]> kept = gradient->owner();
  compute_->Commit({.mean = {.values = *gradient}}, [](const auto&) { ADD_FAILURE(); });
  gradient.reset();
  while (!program_.committing) std::this_thread::yield();
  EXPECT_FALSE(kept.expired());
  std::jthread letting_go([this] {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    program_.hold_commit = false;
  });
  compute_.reset();  // waits for the commit
  EXPECT_TRUE(kept.expired());
  EXPECT_EQ(program_.total(), 10);
}

TEST_P(ThreadedComputeTest, AnExceptionAtTheEndOfAnOperationIsItsError) {
  program_.throws_in_wishes = true;
  const FloatBuffer gradient = Filled(10);
  Error heard;
  compute_->Commit({.mean = {.values = gradient}}, [&](const auto& status) {
    heard = status.error();
    loop_.Stop();
  });
  loop_.Run();
  EXPECT_EQ(heard, (Error{ErrorCode::kUnavailable, "out of memory"}));
}

// If the program fetches its work, the call lasts until it has fetched it.
TEST_P(ThreadedComputeTest, ATickWithoutShardsIsACall) {
  compute_->RunTick({.step = 7, .blocks = {}, .tasks = {}}, {[](const NodePart&) {},
                                                             [&](const Result<TickOutput>& output) {
                                                               EXPECT_TRUE(output);
                                                               EXPECT_EQ(compute_->call(),
                                                                         std::nullopt);
                                                               loop_.Stop();
                                                             }});
  EXPECT_EQ(compute_->call(), (ProgramCall{.number = 1, .step = 7}));
  EXPECT_EQ(ToString(*compute_->call()), "step 8");
  loop_.Run();
}

TEST_P(ThreadedComputeTest, DestroyedItCallsNobody) {
  compute_->RunTick(
      Work(), {[](const NodePart&) { ADD_FAILURE(); }, [](Result<TickOutput>) { ADD_FAILURE(); }});
  compute_.reset();
  loop_.Post([&] { loop_.Post([&] { loop_.Stop(); }); });
  loop_.Run();
}

}  // namespace
}  // namespace pliant
