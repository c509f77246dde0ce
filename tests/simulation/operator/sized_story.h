#pragma once

#include <cstdint>
#include <string>

#include "tests/simulation/operator/story_world.h"

namespace pliant::operator_sim {

// A story whose jobs set their minimum and maximum size.
class SizedStory : public OperatorStory {
 protected:
  using OperatorStory::OperatorStory;

  void Submit(const std::string& job, int min_learners, int max_learners,
              Json changes = Json::object()) {
    changes["elastic"] = {{"minLearners", min_learners}, {"maxLearners", max_learners}};
    world.Submit(job, changes);
  }

  // In any phase of the job.
  bool ReachLearners(const std::string& job, int learners,
                     Duration limit = std::chrono::minutes(3)) {
    return world.RunUntil([&] { return world.Learners(job) == learners; }, limit);
  }
};

}  // namespace pliant::operator_sim
