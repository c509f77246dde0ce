#include <memory>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "simulator/baselines/optimus.h"
#include "simulator/baselines/strict.h"
#include "simulator/baselines/tiresias.h"
#include "tests/unit/simulator/small_profile.h"

namespace pliant::simulator {
namespace {

// Jobs of the small application on two nodes of four GPUs.
class BaselinesTest : public testing::Test {
 protected:
  RoundJob& Job(int gpus, int batch = 32) {
    specs_.push_back(std::make_unique<JobSpec>(JobSpec{.gpus = gpus, .batch = batch}));
    view_.jobs.push_back(
        {.index = view_.jobs.size(), .spec = specs_.back().get(), .profile = &profile_});
    return view_.jobs.back();
  }
  // The next view: each job has what it got.
  void Accept(const std::vector<Allocation>& allocations) {
    for (std::size_t at = 0; at < allocations.size(); ++at) view_.jobs[at].held = allocations[at];
  }

  Profile profile_{SmallTables()};
  std::vector<std::unique_ptr<JobSpec>> specs_;
  RoundView view_{.node_gpus = {4, 4}};
};

using Allocations = std::vector<Allocation>;

TEST_F(BaselinesTest, StrictLetsNobodyPass) {
  Job(4);
  Job(6);
  Job(1);
  StrictGang policy;
  EXPECT_EQ(policy.Allocate(view_), (Allocations{{{0, 4}}, {}, {}}));
  Accept({{{1, 4}}, {}, {}});
  EXPECT_EQ(policy.Allocate(view_), (Allocations{{{1, 4}}, {}, {}}));
  view_.jobs.erase(view_.jobs.begin());
  EXPECT_EQ(policy.Allocate(view_), (Allocations{{{0, 4}, {1, 2}}, {{1, 1}}}));
}

TEST_F(BaselinesTest, TiresiasLetsOthersPass) {
  Job(4);
  Job(6);
  Job(1);
  Tiresias policy;
  EXPECT_EQ(policy.Allocate(view_), (Allocations{{{0, 4}}, {}, {{1, 1}}}));
}

TEST_F(BaselinesTest, TiresiasDemotesByAttainedServicePermanently) {
  Job(8);
  Job(8);
  Tiresias policy(100 * 8);
  Accept(policy.Allocate(view_));
  view_.jobs[0].held_seconds = 99;
  EXPECT_EQ(policy.Allocate(view_), (Allocations{{{0, 4}, {1, 4}}, {}}));
  view_.jobs[0].held_seconds = 100;
  Accept(policy.Allocate(view_));
  EXPECT_EQ(view_.jobs[0].held, Allocation());
  EXPECT_EQ(view_.jobs[1].held, (Allocation{{0, 4}, {1, 4}}));
  // The second follows it into the second queue, so the first runs again.
  view_.jobs[1].held_seconds = 100;
  EXPECT_EQ(policy.Allocate(view_), (Allocations{{{0, 4}, {1, 4}}, {}}));
}

TEST_F(BaselinesTest, TiresiasKeepsNodesOfJobsThatContinue) {
  Job(2);
  Job(3);
  Tiresias policy;
  Accept({{{1, 2}}, {}});
  // The first node has the most free GPUs.
  EXPECT_EQ(policy.Allocate(view_), (Allocations{{{1, 2}}, {{0, 3}}}));
}

TEST_F(BaselinesTest, OptimusGivesOneGpuEachInTheOrderOfSubmission) {
  for (int job = 0; job < 10; ++job) Job(1);
  Optimus policy;
  const Allocations got = policy.Allocate(view_);
  for (std::size_t job = 0; job < 10; ++job) EXPECT_EQ(GpusOf(got[job]), job < 8 ? 1 : 0) << job;
}

// On nodes of one GPU, a step with a batch of 32 takes one learner 4 s (it accumulates), two 2 + 1
// s, and three 1.25 + 2 s, so the third saves nothing.
TEST_F(BaselinesTest, OptimusStopsWhereNothingIsSaved) {
  view_.node_gpus = {1, 1, 1, 1};
  Job(1);
  Optimus policy;
  EXPECT_EQ(GpusOf(policy.Allocate(view_)[0]), 2);
}

TEST_F(BaselinesTest, OptimusPrefersTheLongestRest) {
  view_.node_gpus = {3};
  Job(1).training.epoch = 1;  // one iteration is left
  Job(1);                     // 40 iterations
  Optimus policy;
  const Allocations got = policy.Allocate(view_);
  EXPECT_EQ(GpusOf(got[0]), 1);
  EXPECT_EQ(GpusOf(got[1]), 2);
}

TEST_F(BaselinesTest, OptimusPlacesOnlyJobsOfAnotherSizeAgain) {
  view_.node_gpus = {1, 1, 1, 1};
  Job(1);
  Job(1);
  Optimus policy;
  Accept({{{1, 1}}, {{2, 1}, {0, 1}}});
  const Allocations got = policy.Allocate(view_);
  EXPECT_EQ(got[1], (Allocation{{2, 1}, {0, 1}})) << "two GPUs, as before";
  EXPECT_EQ(got[0], (Allocation{{1, 1}, {3, 1}})) << "two instead of one";
}

TEST_F(BaselinesTest, OptimusKeepsTheLimitOfTheApplication) {
  Job(1);
  Optimus policy;
  EXPECT_GT(GpusOf(policy.Allocate(view_)[0]), 1);
  ProfileTables tables = SmallTables();
  tables.max_gpus = 1;
  profile_ = Profile(std::move(tables));
  EXPECT_EQ(GpusOf(policy.Allocate(view_)[0]), 1);
}

}  // namespace
}  // namespace pliant::simulator
