#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "operator/api/condition.h"
#include "operator/api/elastic_training_job.h"
#include "operator/api/label_selector.h"
#include "operator/api/meta.h"

// The custom resource GpuPool (crds/): nodes whose GPUs are shared by the same queues.
namespace pliant::api {

// Bound of an amount of GPUs in a spec.
inline constexpr int kMaxGpus = 1'000'000;

// The most that jobs of a pool may ask for.
struct PoolBounds {
  ResizeSpec max_resize{.grace_period = std::chrono::seconds(3585),
                        .min_runtime = std::chrono::hours(1),
                        .cooldown = std::chrono::hours(1)};
  std::optional<int> max_gpus_per_job;

  bool operator==(const PoolBounds&) const = default;
};

// Which jobs that wait make a node autoscaler add nodes.
enum class ScaleUp {
  kNone,
  kMinimum,  // those whose minimum is not free
};
std::string_view ToString(ScaleUp scale_up);

struct GpuPoolSpec {
  LabelSelector node_selector;  // empty: the nodes that belong to no other pool
  std::string resource_name;    // counts as GPU; "": that of the operator
  int reserved_gpus = 0;        // kept free of learners
  std::vector<std::string> topology_keys = planner::PoolView{}.topology_keys;
  ScaleUp scale_up = ScaleUp::kNone;
  bool yields_to_pending = false;
  PoolBounds bounds;

  bool operator==(const GpuPoolSpec&) const = default;
};

struct GpuPoolStatus {
  std::int64_t observed_generation = 0;
  std::int64_t nodes = 0;
  std::int64_t capacity_gpus = 0;
  std::int64_t allocated_gpus = 0;    // held by learners
  std::int64_t foreign_gpus = 0;      // held by other pods
  std::int64_t requested_gpus = 0;    // of nodes that a node autoscaler should add
  std::int64_t yielded_gpus = 0;      // kept free for pending pods of other workloads
  std::vector<Condition> conditions;  // by type

  bool operator==(const GpuPoolStatus&) const = default;
};

struct GpuPool {
  ObjectMeta meta;
  GpuPoolSpec spec;
  GpuPoolStatus status;
  // As ElasticTrainingJob::unreadable.
  std::string unreadable;

  bool operator==(const GpuPool&) const = default;
};

// kInvalid if its metadata or its status is not understood.
Result<GpuPool> DecodeGpuPool(const nlohmann::json& object);

// The status as JSON for a merge patch.
nlohmann::json EncodeStatus(const GpuPoolStatus& status);

}  // namespace pliant::api
