// Stories of jobs that are limited by steps, and evaluated by steps.

#include <algorithm>
#include <cstdint>

#include <gtest/gtest.h>

#include "base/format.h"
#include "base/log.h"
#include "tests/simulation/world.h"
#include "trainer/checkpoint/checkpoint.h"

namespace pliant::sim {
namespace {

using namespace std::chrono_literals;

// 5 steps an epoch, 2 ticks an evaluation. The last step is within an epoch.
JobSpec JobOfSteps(std::uint64_t max_steps, std::uint64_t evaluate_every) {
  return {.data = {.train_samples = 75,
                   .test_samples = 20,
                   .global_batch_size = 16,
                   .logical_shards = 8,
                   .seed = 3,
                   .max_steps = max_steps,
                   .evaluate_every = evaluate_every},
          .habits = {.wants_evaluation_results = true},
          .max_learners = 5,
          .checkpoint_every_steps = 10};
}

// The state after each step and after each evaluation, the samples, the lines of metrics and the
// checkpoints are those of the reference.
class StoriesOfSteps : public testing::Test {
 protected:
  static void SetUpTestSuite() { log::Configure(log::Format::kText, log::Level::kError); }
  static void Complete(World& world) {
    EXPECT_TRUE(world.RunUntil([&] { return world.completed(); }, 5min)) << world.Describe();
    EXPECT_TRUE(world.RunUntil([&] { return world.running().empty(); }, 1min));
    world.CheckTheEnd();
  }
};

TEST_F(StoriesOfSteps, LearnersComeAndGoAndDie) {
  for (const std::uint64_t every : {0U, 1U, 4U, 7U, 200U}) {
    const JobSpec job = JobOfSteps(104, every);
    const Reference reference = ComputeReference(*Schedule::Make(job.data), job.habits);
    for (std::uint64_t seed = 900; seed < 903 && !HasFailure(); ++seed) {
      SCOPED_TRACE(Format("evaluated every {} steps, seed {}", every, seed));
      World world(seed, job, reference, {.shard = 5ms});
      world.Want(1);
      Tick next = 10;
      for (const int learners : {3, 2, 5, 1}) {
        ASSERT_TRUE(world.RunUntil([&] { return world.furthest() > next; }, 1min));
        world.Want(learners);
        ASSERT_TRUE(world.RunUntil([&] { return world.furthest() > next + 8; }, 1min));
        if (world.running().size() > 1) world.Kill(*world.running().front());
        next = world.furthest() + 10;
      }
      Complete(world);
      EXPECT_EQ(ReadFinal(world.store)->position.step, 104U);
    }
  }
}

// All are lost, and others continue from a checkpoint, at each place of the row of steps and
// evaluations.
TEST_F(StoriesOfSteps, TheyContinueFromACheckpoint) {
  JobSpec job = JobOfSteps(44, 6);
  const Reference reference = ComputeReference(*Schedule::Make(job.data), job.habits);
  for (std::uint64_t every = 1; every < 14 && !HasFailure(); ++every) {
    SCOPED_TRACE(every);
    job.checkpoint_every_steps = every;
    World world(every, job, reference, {.shard = 5ms});
    world.Want(3);
    ASSERT_TRUE(world.RunUntil([&] { return world.newest_step() >= 13; }, 1min));
    for (Pod* const pod : world.running()) world.Kill(*pod);
    Complete(world);
    EXPECT_EQ(world.state_losses(), 1);
  }
}

// Only rank 0's wish counts, and it writes the whole state: there are no other checkpoints.
TEST_F(StoriesOfSteps, TheProgramAsksForCheckpoints) {
  JobSpec job = JobOfSteps(104, 4);
  job.checkpoint_every_steps = 0;
  job.checkpoint_slice_bytes = 1;
  job.habits.saves_every = 13;
  const Reference reference = ComputeReference(*Schedule::Make(job.data), job.habits);
  World world(910, job, reference, {.shard = 5ms});
  world.Want(3);
  for (const std::uint64_t step : {13U, 39U, 65U}) {
    ASSERT_TRUE(world.RunUntil([&] { return world.newest_step() == step; }, 1min)) << step;
    world.Kill(*world.running().front());
    world.Want(world.running().size() == 3 ? 2 : 4);
  }
  for (Pod* const pod : world.running()) world.Kill(*pod);
  Complete(world);
  EXPECT_EQ(world.state_losses(), 1);
  EXPECT_EQ(NewestCheckpoint(world.store)->slices(), 1);
}

}  // namespace
}  // namespace pliant::sim
