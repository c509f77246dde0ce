#include "simulator/rounds/round_engine.h"

#include <functional>
#include <vector>

#include <gtest/gtest.h>

#include "simulator/baselines/strict.h"
#include "simulator/rounds/free_gpus.h"
#include "tests/unit/simulator/small_profile.h"

namespace pliant::simulator {
namespace {

// Answers with a function, and remembers what it saw.
class Scripted : public RoundPolicy {
 public:
  using Answer = std::function<std::vector<Allocation>(const RoundView&)>;
  explicit Scripted(Answer answer) : answer_(std::move(answer)) {}
  std::vector<Allocation> Allocate(const RoundView& view) override {
    seen.push_back(view);
    return answer_(view);
  }
  std::vector<RoundView> seen;

 private:
  Answer answer_;
};

JobSpec Small(std::string name, std::int64_t submitted, int gpus, int batch) {
  return {.name = std::move(name), .submitted_seconds = submitted, .gpus = gpus, .batch = batch};
}

// One learner with a batch of 8 takes 1 s a step, so an epoch ends at a progress of 100 after 100
// s, and the training after 200 s.
TEST(RunRoundsTest, TheFirstPlanIsAfterTheFirstRoundAndAStartTakesAWhile) {
  const std::vector<JobSpec> jobs = {Small("a", 0, 1, 8)};
  Scripted policy([](const RoundView&) { return std::vector<Allocation>{{{0, 1}}}; });
  const auto outcomes = RunRounds(SmallProfiles(), jobs, RoundOptions{}, policy);
  ASSERT_TRUE(outcomes) << outcomes.error();
  EXPECT_EQ((*outcomes)[0].completed_seconds, 60 + 30 + 200);
  EXPECT_EQ((*outcomes)[0].starts, 1);
  ASSERT_EQ(policy.seen.size(), 4U) << "at 60, 120, 180 and 240 s, not at 300 s";
  EXPECT_EQ(policy.seen[0].now_seconds, 60);
  EXPECT_EQ(policy.seen[0].node_gpus, std::vector<int>(16, 4));
  EXPECT_TRUE(policy.seen[0].jobs[0].held.empty());
  EXPECT_EQ(policy.seen[2].jobs[0].training, (Training{.epoch = 0, .progress = 90}));
  EXPECT_EQ(policy.seen[2].jobs[0].held_seconds, 120);
  EXPECT_EQ(policy.seen[3].jobs[0].training, (Training{.epoch = 1, .progress = 150}));
}

TEST(RunRoundsTest, OnlyOtherGpusCostARestart) {
  const std::vector<JobSpec> jobs = {Small("a", 0, 1, 8)};
  const std::vector<Allocation> kByPlan = {{{0, 1}}, {{1, 1}}, {{1, 1}}, {}, {{1, 1}}};
  std::size_t plan = 0;
  Scripted policy([&](const RoundView&) {
    return std::vector<Allocation>{kByPlan[std::min(plan++, kByPlan.size() - 1)]};
  });
  const auto outcomes = RunRounds(SmallProfiles(), jobs, RoundOptions{}, policy);
  ASSERT_TRUE(outcomes) << outcomes.error();
  // 30 s of 60, then after a move 30, then 60, then none, then 30 and so on.
  EXPECT_EQ(policy.seen[1].jobs[0].training.progress, 30);
  EXPECT_EQ(policy.seen[2].jobs[0].training.progress, 60);
  EXPECT_EQ(policy.seen[3].jobs[0].training.progress, 120);
  EXPECT_EQ(policy.seen[4].jobs[0].training.progress, 120);
  EXPECT_EQ(policy.seen[4].jobs[0].held_seconds, 180) << "not while it waited";
  EXPECT_EQ(policy.seen[5].jobs[0].training.progress, 150);
  EXPECT_EQ((*outcomes)[0].completed_seconds, 360 + 50);
  EXPECT_EQ((*outcomes)[0].starts, 3);
  EXPECT_EQ((*outcomes)[0].started_seconds, 90);
  EXPECT_EQ((*outcomes)[0].resizes, 1) << "the second start is a move, the third follows a wait";
  EXPECT_EQ((*outcomes)[0].moves, 1);
  const std::vector<SizeAt> sizes = {
      {60'000, 1, 8}, {240'000, 0, 8}, {300'000, 1, 8}, {410'000, 0, 8}};
  EXPECT_EQ((*outcomes)[0].sizes, sizes);
  EXPECT_DOUBLE_EQ((*outcomes)[0].gpu_seconds, 180 + 110);
  EXPECT_DOUBLE_EQ((*outcomes)[0].useful_gpu_seconds, 200) << "without 3 restarts of 30 s";
}

TEST(RunRoundsTest, GpuTimeIsUsefulAsFarAsLearnersDoNotSlowEachOtherDown) {
  const std::vector<JobSpec> jobs = {Small("a", 0, 2, 8)};
  Scripted policy([](const RoundView&) { return std::vector<Allocation>{{{0, 2}}}; });
  const auto outcomes = RunRounds(SmallProfiles(), jobs, RoundOptions{}, policy);
  ASSERT_TRUE(outcomes) << outcomes.error();
  EXPECT_EQ((*outcomes)[0].completed_seconds, 90 + 300) << "steps of 1.5 s";
  EXPECT_DOUBLE_EQ((*outcomes)[0].gpu_seconds, 2 * 330);
  EXPECT_NEAR((*outcomes)[0].useful_gpu_seconds, 200, 1e-9) << "as one learner alone";
}

TEST(RunRoundsTest, PoliciesSeeOnlyJobsThatAreSubmittedAndNotDone) {
  const std::vector<JobSpec> jobs = {Small("a", 60, 1, 8), Small("b", 121, 1, 8),
                                     Small("c", 2000, 1, 8)};
  Scripted policy([](const RoundView& view) {
    std::vector<Allocation> all;
    for (const RoundJob& job : view.jobs) all.push_back({{static_cast<int>(job.index), 1}});
    return all;
  });
  const auto outcomes = RunRounds(SmallProfiles(), jobs, RoundOptions{}, policy);
  ASSERT_TRUE(outcomes) << outcomes.error();
  std::vector<std::vector<std::size_t>> seen;
  for (const RoundView& view : policy.seen) {
    seen.emplace_back();
    for (const RoundJob& job : view.jobs) seen.back().push_back(job.index);
  }
  const std::vector<std::vector<std::size_t>> want = {{0}, {0}, {0, 1}, {0, 1}, {1},
                                                      {1}, {2}, {2},    {2},    {2}};
  EXPECT_EQ(seen, want);
  EXPECT_EQ(policy.seen[6].now_seconds, 2040);
}

TEST(RunRoundsTest, ATrainingWithAnotherBatchFollowsItsGoodput) {
  // Two learners on a node, batch 32: 3 s a step. First epoch: gain 8 / 5.75 a step, so 100 of
  // progress take 215.6 s; second: gain 4, 75 s.
  const std::vector<JobSpec> jobs = {Small("a", 0, 2, 32)};
  StrictGang policy;
  const auto outcomes = RunRounds(SmallProfiles(), jobs, RoundOptions{}, policy);
  ASSERT_TRUE(outcomes) << outcomes.error();
  EXPECT_EQ((*outcomes)[0].completed_seconds, 60 + 30 + 216 + 75);
}

TEST(RunRoundsTest, RefusesARunThatCannotEnd) {
  const std::vector<JobSpec> jobs = {Small("a", 0, 1, 8)};
  Scripted policy([](const RoundView& view) { return std::vector<Allocation>(view.jobs.size()); });
  const auto idle = RunRounds(SmallProfiles(), jobs, {.max_seconds = 600}, policy);
  ASSERT_FALSE(idle);
  EXPECT_EQ(idle.error().message,
            "the job a is not done after 600 s; use more GPUs, or submit it earlier");
  const auto large =
      RunRounds(SmallProfiles(), std::vector{Small("big", 0, 5, 32)}, {.nodes = 1}, policy);
  ASSERT_FALSE(large);
  EXPECT_EQ(large.error().message,
            "the job big asks for 5 GPUs, and there are 1 nodes of 4; add nodes");
}

TEST(RunRoundsDeathTest, APolicyMustNotAllocateAGpuTwice) {
  const std::vector<JobSpec> jobs = {Small("a", 0, 1, 8)};
  Scripted policy([](const RoundView&) { return std::vector<Allocation>{{{0, 5}}}; });
  EXPECT_DEATH(static_cast<void>(RunRounds(SmallProfiles(), jobs, RoundOptions{}, policy)),
               "a policy allocates each GPU once");
}

TEST(FreeGpusTest, TheNodeWithTheMostComesFirst) {
  FreeGpus free({2, 4, 1, 4});
  free.Remove({{1, 1}});
  EXPECT_EQ(free.total(), 10);
  EXPECT_EQ(free.TakeMostFree(5), (Allocation{{3, 4}, {1, 1}}));
  EXPECT_EQ(free.TakeMostFree(3), (Allocation{{0, 2}, {1, 1}}));
  EXPECT_EQ(free.TakeMostFree(0), Allocation());
  EXPECT_EQ(GpusOf({{3, 4}, {1, 1}}), 5);
  EXPECT_EQ(PlacementOf({{3, 4}, {1, 1}}), (Placement{4, 1}));
}

}  // namespace
}  // namespace pliant::simulator
