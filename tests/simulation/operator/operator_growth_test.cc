// An operator keeps nothing in memory about deleted jobs, however many there were.

#include <chrono>
#include <cstddef>
#include <functional>
#include <string>

#include <gtest/gtest.h>

#include "base/format.h"
#include "base/log.h"
#include "tests/kube/live_bytes.h"
#include "tests/simulation/operator/story_world.h"

namespace pliant::operator_sim {
namespace {

using namespace std::chrono_literals;

// Runs the whole life of a job of this name.
using JobLife = std::function<void(StoryWorld& world, const std::string& job)>;

// Bytes that an operator holds after `jobs` jobs were created and deleted.
std::ptrdiff_t HeldAfter(int jobs, const JobLife& life) {
  StoryWorld world(13);
  for (int i = 0; i < jobs; ++i) {
    const std::string job = Format("job-{:02}", i);
    life(world, job);
    world.leader()->Metrics();
    world.Delete(job);
    world.loop.RunFor(2s);
  }
  // Within this time all requests are answered. Anything scheduled for an hour ahead is still held,
  // and counts.
  world.loop.RunFor(90s);
  const std::ptrdiff_t before = LiveBytes();
  world.KillOperator();
  return before - LiveBytes();
}

void ExpectNoGrowth(const JobLife& life) {
  constexpr int kFew = 4;
  constexpr int kMany = 44;
  const std::ptrdiff_t few = HeldAfter(kFew, life);
  ASSERT_GT(few, 1000) << "the measurement must show the operator's memory";
  const std::ptrdiff_t many = HeldAfter(kMany, life);
  // Any entry per job would need at least its name as a key.
  EXPECT_LT(many - few, (kMany - kFew) * 64) << "bytes kept for deleted jobs";
}

class OperatorGrowth : public testing::Test {
 protected:
  void SetUp() override { log::Configure(log::Format::kText, log::Level::kError); }
  void TearDown() override { log::Configure(log::Format::kText, log::Level::kInfo); }
};

TEST_F(OperatorGrowth, ByJobsThatTrain) {
  ExpectNoGrowth([](StoryWorld& world, const std::string& job) {
    world.Submit(job, {{"elastic", {{"maxLearners", 2}}}});
    ASSERT_TRUE(world.ReachSizes({{job, 2}}));
    world.CrashALearner(job);
    ASSERT_TRUE(world.Reach([&] { return world.Status(job).value("restarts", 0) == 1; }));
    ASSERT_TRUE(world.ReachSizes({{job, 2}}));
    world.trainings.Complete(job);
    ASSERT_TRUE(world.Reach([&] { return world.Phase(job) == "Succeeded"; }));
  });
}

TEST_F(OperatorGrowth, ByJobsThatAreDeletedAsTheyTrain) {
  ExpectNoGrowth([](StoryWorld& world, const std::string& job) {
    world.Submit(job, {{"elastic", {{"maxLearners", 2}}}});
    ASSERT_TRUE(world.ReachSizes({{job, 2}}));
  });
}

TEST_F(OperatorGrowth, ByJobsThatWaitAndGo) {
  ExpectNoGrowth([](StoryWorld& world, const std::string& job) {
    world.Submit(job, {{"elastic", {{"minLearners", 9}, {"maxLearners", 9}}}});
    ASSERT_TRUE(world.Reach([&] { return world.Phase(job) == "Queued"; }));
  });
}

TEST_F(OperatorGrowth, ByJobsThatGoInTheMiddleOfTheirAdmission) {
  int admitted = 0;
  int others = 0;
  for (const int after : {30, 100, 180, 300}) {
    ExpectNoGrowth([&](StoryWorld& world, const std::string& job) {
      world.Submit(job);
      world.loop.RunFor(std::chrono::milliseconds(after));
      ++(world.Term(job) > 0 ? admitted : others);
    });
  }
  EXPECT_GT(admitted, 0) << "some have a coordinator that starts";
  EXPECT_GT(others, 0) << "some are not admitted yet";
}

TEST_F(OperatorGrowth, ByJobsOfWhichMuchWasToBeDoneLater) {
  ExpectNoGrowth([](StoryWorld& world, const std::string& job) {
    world.Submit(job, {{"ttlSecondsAfterFinished", 86400}, {"elastic", {{"maxLearners", 1}}}});
    ASSERT_TRUE(world.ReachSizes({{job, 1}}));
    world.trainings.Complete(job);
    ASSERT_TRUE(world.Reach([&] { return world.Phase(job) == "Succeeded"; }));
    world.loop.RunFor(15s);
  });
}

}  // namespace
}  // namespace pliant::operator_sim
