// What an operator keeps of jobs that came and went: nothing, however many they were.

#include <chrono>
#include <cstddef>
#include <functional>
#include <string>

#include <gtest/gtest.h>

#include "base/format.h"
#include "base/log.h"
#include "tests/kube/live_bytes.h"
#include "tests/scenario/operator/operator_world.h"

namespace pliant {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

// The whole life of a job of this name.
using Life = std::function<void(OperatorWorld& world, const std::string& job)>;

// What an operator holds, in bytes, after so many jobs have come and gone.
std::ptrdiff_t HeldAfter(int jobs, const Life& life) {
  OperatorWorld world({{"gpu-1", 4}});
  world.StartOperator();
  for (int i = 0; i < jobs; ++i) {
    const std::string job = Format("job-{:02}", i);
    life(world, job);
    world.Metrics();
    world.RemoveJob(job);
    world.loop.RunFor(seconds(2));
  }
  // What was asked of anybody is answered; what is to be done of a job in an hour is not.
  world.loop.RunFor(seconds(90));
  const std::ptrdiff_t before = LiveBytes();
  world.KillOperator();
  return before - LiveBytes();
}

void ExpectNoGrowth(const Life& life) {
  constexpr int kFew = 4;
  constexpr int kMany = 24;
  const std::ptrdiff_t few = HeldAfter(kFew, life);
  ASSERT_GT(few, 1000) << "an operator holds something";
  const std::ptrdiff_t many = HeldAfter(kMany, life);
  // The least that anything would keep of a job is its name as a key.
  EXPECT_LT(many - few, (kMany - kFew) * 64) << "bytes";
}

class OperatorGrowth : public testing::Test {
 protected:
  void SetUp() override { log::Configure(log::Format::kText, log::Level::kError); }
  void TearDown() override { log::Configure(log::Format::kText, log::Level::kInfo); }
};

TEST_F(OperatorGrowth, ByJobsThatTrain) {
  ExpectNoGrowth([](OperatorWorld& world, const std::string& job) {
    world.SubmitJob(job, {{"elastic", {{"maxLearners", 2}}}});
    ASSERT_TRUE(world.ReachSizes({{job, 2}}));
    world.CrashALearner(job);
    ASSERT_TRUE(world.Reach([&] { return world.Status(job).value("restarts", 0) == 1; }));
    ASSERT_TRUE(world.ReachSizes({{job, 2}}));
    world.Complete(job);
    ASSERT_TRUE(world.Reach([&] { return world.Phase(job) == "Succeeded"; }));
  });
}

TEST_F(OperatorGrowth, ByJobsThatAreDeletedAsTheyTrain) {
  ExpectNoGrowth([](OperatorWorld& world, const std::string& job) {
    world.SubmitJob(job, {{"elastic", {{"maxLearners", 2}}}});
    ASSERT_TRUE(world.ReachSizes({{job, 2}}));
  });
}

TEST_F(OperatorGrowth, ByJobsThatWaitAndGo) {
  ExpectNoGrowth([](OperatorWorld& world, const std::string& job) {
    world.SubmitJob(job, {{"elastic", {{"minLearners", 8}}}});
    ASSERT_TRUE(world.Reach([&] { return world.Phase(job) == "Queued"; }));
  });
}

TEST_F(OperatorGrowth, ByJobsThatGoInTheMiddleOfTheirAdmission) {
  for (const int after : {10, 30, 50, 70}) {
    ExpectNoGrowth([&](OperatorWorld& world, const std::string& job) {
      world.SubmitJob(job);
      world.loop.RunFor(milliseconds(after));
    });
  }
}

TEST_F(OperatorGrowth, ByJobsOfWhichMuchWasToBeDoneLater) {
  ExpectNoGrowth([](OperatorWorld& world, const std::string& job) {
    world.SubmitJob(job, {{"ttlSecondsAfterFinished", 86400}, {"elastic", {{"maxLearners", 1}}}});
    ASSERT_TRUE(world.ReachSizes({{job, 1}}));
    world.Complete(job);
    ASSERT_TRUE(world.Reach([&] { return world.Phase(job) == "Succeeded"; }));
    world.loop.RunFor(seconds(15));
  });
}

}  // namespace
}  // namespace pliant
