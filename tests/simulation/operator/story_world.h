#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <string_view>

#include <gtest/gtest.h>

#include "tests/simulation/operator/world.h"

namespace pliant::operator_sim {

// Trains for longer than any story lasts.
inline const TrainingOptions kLong{.steps = 1'000'000};

// The world as the stories have it: two nodes of four GPUs, two replicas of the operator, of which
// one leads, and what the stories do to them and see of them.
class StoryWorld : public World {
 public:
  explicit StoryWorld(std::uint64_t seed);

  // One that trains on until it is told to complete, on eight learners at most.
  using World::Submit;
  void Submit(const std::string& job, const Json& spec_changes = Json::object());
  // One that runs.
  void CrashALearner(const std::string& job);
  // Removes pods without asking them, as `kubectl delete --force` does.
  void RemovePods(const std::string& job, std::string_view role);
  // Both replicas, as by SIGKILL; they come back.
  void KillOperator();

  int Learners(const std::string& job) const { return Status(job).value("learners", 0); }
  int CountPods(const std::string& job, std::string_view role) const;
  // Whether the job has a coordinator of this term.
  bool HasCoordinator(const std::string& job, int term) const;
  int Term(const std::string& job) const { return Status(job).value("coordinatorTerm", 0); }
  // The names in the certificate of the job's coordinator.
  std::set<std::string> NamesOfCoordinator(const std::string& job) const;
  // By the operator, but those to its lease and dry ones.
  int Writes() const { return writes_besides_lease() - dry_runs(); }

  // Whether it came true within ten minutes.
  bool Reach(const std::function<bool()>& done) { return RunUntil(done, std::chrono::minutes(10)); }
  // That many learners train.
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
