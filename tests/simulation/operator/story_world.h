#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>

#include <gtest/gtest.h>

#include "tests/simulation/operator/world.h"

namespace pliant::operator_sim {

// Trains for longer than any story lasts.
inline const TrainingOptions kLong{.steps = 1'000'000};

// The world of the stories: two nodes of four GPUs, two operator replicas of which one leads, and
// what stories do to them and read from them.
class StoryWorld : public World {
 public:
  explicit StoryWorld(std::uint64_t seed);

  // Submits a job that trains until Complete(), with at most eight learners.
  using World::Submit;
  void Submit(const std::string& job, const Json& spec_changes = Json::object());
  // Crashes one running learner.
  void CrashALearner(const std::string& job);
  // Removes pods without notice, as `kubectl delete --force` does.
  void RemovePods(const std::string& job, std::string_view role);
  // Kills both replicas with SIGKILL; they restart.
  void KillOperator();

  int Learners(const std::string& job) const { return Status(job).value("learners", 0); }
  int CountPods(const std::string& job, std::string_view role) const;
  // Whether the job has a coordinator of this term.
  bool HasCoordinator(const std::string& job, int term) const;
  int Term(const std::string& job) const { return Status(job).value("coordinatorTerm", 0); }
  // Writes of the operator, without writes to its lease and dry runs.
  int Writes() const { return writes_besides_lease() - dry_runs(); }

  // Whether the condition became true within ten minutes.
  bool Reach(const std::function<bool()>& done) { return RunUntil(done, std::chrono::minutes(10)); }
  // Whether each job reaches this number of training learners.
  bool ReachSizes(const std::map<std::string, int>& sizes);
  bool ReachEvent(const std::string& event);  // "job: Reason"
};

class OperatorStory : public testing::Test {
 protected:
  explicit OperatorStory(std::uint64_t seed = 13) : world(seed) {}

  void TearDown() override { EXPECT_FALSE(world.faulty()) << world.Describe(); }

  StoryWorld world;
};

}  // namespace pliant::operator_sim
