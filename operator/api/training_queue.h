#pragma once

#include <chrono>
#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "operator/api/condition.h"
#include "operator/api/gpu_pool.h"
#include "operator/api/label_selector.h"
#include "operator/api/meta.h"
#include "operator/planner/cluster_snapshot.h"

// The custom resource TrainingQueue (crds/): a team's part of a pool.
namespace pliant::api {

using planner::QueuePolicy;
using planner::QueueStop;

// Bounds of the spec, as in the CRD.
inline constexpr int kMaxWeight = 10'000;
inline constexpr int kMinHalfLifeSeconds = 60;
inline constexpr int kMaxHalfLifeSeconds = 31'536'000;  // a year

// Whether a job may pass one that waits before it.
enum class Queueing { kBestEffort, kStrict };
std::string_view ToString(Queueing queueing);

// Which jobs weigh more than by their priority, if the policy is Throughput.
enum class Bias { kNone, kShortJobs };
std::string_view ToString(Bias bias);

// How a queue gets its guaranteed GPUs back.
enum class Reclaim {
  kEvict,       // jobs of borrowing queues shrink; if their minimums stand in the way, they requeue
  kShrinkOnly,  // jobs of borrowing queues only shrink
};
std::string_view ToString(Reclaim reclaim);

struct QueuePriority {
  int fallback = 5000;     // of jobs that ask for none
  int max = kMaxPriority;  // a job that asks for more gets this

  bool operator==(const QueuePriority&) const = default;
};

// Amounts are in GPUs.
struct TrainingQueueSpec {
  std::string pool{planner::kBuiltInPool};
  LabelSelector namespace_selector;  // empty: all namespaces
  int weight = 100;                  // share relative to the pool's other queues
  int guaranteed = 0;                // the queue gets them back whenever it can use them
  std::optional<int> limit;          // of its jobs together; absent: none
  // Unused guaranteed GPUs that other queues may borrow; absent: all.
  std::optional<int> lending_limit;
  QueuePolicy policy = QueuePolicy::kFairShare;
  Bias bias = Bias::kNone;
  Queueing queueing = Queueing::kBestEffort;
  Reclaim reclaim = Reclaim::kEvict;
  QueuePriority priority;
  // time in which attained GPU time counts half, for the order of waiting jobs
  std::chrono::seconds service_half_life{86400};
  QueueStop stop = QueueStop::kNone;

  bool operator==(const TrainingQueueSpec&) const = default;
};

struct TrainingQueueStatus {
  std::int64_t observed_generation = 0;
  std::int64_t demand = 0;            // GPUs that its jobs could use
  std::int64_t entitled = 0;          // GPUs of its share
  std::int64_t allocated = 0;         // GPUs held by its jobs
  std::int64_t borrowed = 0;          // GPUs held beyond the guaranteed ones
  std::int64_t lent = 0;              // guaranteed GPUs that jobs of other queues hold
  std::int64_t waiting = 0;           // jobs
  std::int64_t running = 0;           // jobs
  std::string reason;                 // why it has this many GPUs, a sentence
  std::vector<Condition> conditions;  // by type

  bool operator==(const TrainingQueueStatus&) const = default;
};

struct TrainingQueue {
  ObjectMeta meta;
  TrainingQueueSpec spec;
  TrainingQueueStatus status;
  // As ElasticTrainingJob::unreadable.
  std::string unreadable;

  bool operator==(const TrainingQueue&) const = default;
};

// kInvalid if its metadata or its status is not understood.
Result<TrainingQueue> DecodeTrainingQueue(const nlohmann::json& object);

// The status as JSON for a merge patch: a field without a value is null, which removes it.
nlohmann::json EncodeStatus(const TrainingQueueStatus& status);

}  // namespace pliant::api
