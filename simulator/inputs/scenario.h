#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/result.h"
#include "operator/planner/cluster_snapshot.h"
#include "simulator/model/profile.h"
#include "simulator/model/workload.h"

// A cluster, its jobs, and what happens to them: the input of a simulation. Times are milliseconds
// since the beginning of the run.
namespace pliant::simulator {

inline constexpr std::size_t kMaxScenarioBytes = std::size_t{16} << 20;
inline constexpr std::size_t kMaxScenarioItems = 100'000;  // jobs, and as many events

struct ScenarioJob {
  JobSpec spec;
  planner::LearnerCount min_learners = 1;
  // Each GPU of them has at least the smallest local batch of the profile.
  planner::LearnerCount max_learners = 1;
  std::string queue{planner::kBuiltInQueue};
  int priority = 5000;
  int gpus_per_learner = 1;
  // The profiles were measured with any number of learners.
  planner::Reproducibility reproducibility = planner::Reproducibility::kStatistical;
  std::optional<std::int64_t> deadline;  // a time after its submission; absent: none
  bool operator==(const ScenarioJob&) const = default;
};

// Each event happens at a time. Nodes and jobs are those of the scenario, by name; jobs were
// submitted before.
struct CordonNode {
  std::int64_t at = 0;
  std::string node;
  bool operator==(const CordonNode&) const = default;
};
struct UncordonNode {
  std::int64_t at = 0;
  std::string node;
  bool operator==(const UncordonNode&) const = default;
};
// The node is lost with its learners, and comes back.
struct FailNode {
  std::int64_t at = 0;
  std::string node;
  std::int64_t lasts = 1;  // at least 1 ms
  bool operator==(const FailNode&) const = default;
};
struct SetPriority {
  std::int64_t at = 0;
  std::string job;
  int priority = 5000;
  bool operator==(const SetPriority&) const = default;
};
struct FinishJob {
  std::int64_t at = 0;
  std::string job;
  bool operator==(const FinishJob&) const = default;
};
using ScenarioEvent = std::variant<CordonNode, UncordonNode, FailNode, SetPriority, FinishJob>;

std::int64_t TimeOf(const ScenarioEvent& event);

struct Scenario {
  std::vector<planner::NodeView> nodes;
  std::vector<planner::QueueView> queues;  // by name; `default` may be absent
  std::vector<ScenarioJob> jobs;           // in the order of submission, then of the file
  std::vector<ScenarioEvent> events;       // in the order of time, then of the file
};

// Reads a scenario in YAML:
//   nodes: [{count: 16, gpus: 4, labels: {zone: a}}]  # n00, n01, ... over all groups
//   queues: {research: {weight: 200, guaranteed: 8, limit: 32, lendingLimit: 4, policy: Throughput,
//                       bias: ShortJobs, queueing: Strict, reclaim: ShrinkOnly}}
//   jobs:
//     - {name: a, submit: 53s, profile: cifar10, batch: 2048, min: 1, max: 16, queue: research,
//        priority: 5000, gpusPerLearner: 1, gpus: 4, reproducibility: Statistical, deadline: 2h}
//   events:
//     - {at: 1h, cordon: n03}
//     - {at: 2h, uncordon: n03}
//     - {at: 90m, fail: n05, for: 10m}
//     - {at: 2h, priority: {job: a, to: 10000}}
//     - {at: 3h, finish: a}
// A job needs only `name` and `profile`. `batch` is then the smallest of the profile, `max` as many
// learners as the batch allows, and `gpus`, which a scheduler without elasticity gives it, those of
// `min` learners. An error names the file, the line and the remedy. All that it returns can be
// simulated.
Result<Scenario> ReadScenario(const std::filesystem::path& path, const Profiles& profiles);
// `file`: its name in errors.
Result<Scenario> ParseScenario(const std::string& text, const std::string& file,
                               const Profiles& profiles);

// The CSV workload of `path` (ReadWorkload) on nodes such as "16x4" (ParseNodes), in queue default.
Result<Scenario> ReadWorkloadScenario(const std::filesystem::path& path, std::string_view nodes,
                                      const Profiles& profiles);

}  // namespace pliant::simulator
