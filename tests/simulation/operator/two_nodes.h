#pragma once

#include <cstdint>
#include <string>

#include <gtest/gtest.h>

#include "tests/simulation/operator/world.h"

namespace pliant::operator_sim {

// Trains for longer than any story lasts.
inline const TrainingOptions kLong{.steps = 1'000'000};

// Two nodes of four GPUs, and two replicas of the operator.
class TwoNodes : public testing::Test {
 protected:
  explicit TwoNodes(std::uint64_t seed) : world(seed) { world.StartOnTwoNodes(); }

  void TearDown() override { EXPECT_FALSE(world.faulty()) << world.Describe(); }

  void Submit(const std::string& job, int learners_min, int learners_max,
              Json changes = Json::object()) {
    changes["elastic"] = {{"minLearners", learners_min}, {"maxLearners", learners_max}};
    world.Submit(job, kLong, changes);
  }

  bool ReachLearners(const std::string& job, int learners,
                     Duration limit = std::chrono::minutes(3)) {
    return world.RunUntil([&] { return world.Status(job).value("learners", 0) == learners; },
                          limit);
  }

  World world;
};

}  // namespace pliant::operator_sim
