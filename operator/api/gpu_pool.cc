#include "operator/api/gpu_pool.h"

#include <nlohmann/json.hpp>

#include "operator/api/enum_field.h"
#include "operator/api/fields.h"
#include "operator/api/spec_and_status.h"

namespace pliant::api {
namespace {

constexpr int kMaxGpusPerJob = 16384;
constexpr ScaleUp kScaleUps[] = {ScaleUp::kNone, ScaleUp::kMinimum};

PoolBounds ReadBounds(Fields& fields) {
  PoolBounds bounds;
  bounds.max_resize = {
      .grace_period = std::chrono::seconds(fields.Int("gracePeriodSeconds", 3585, 1, 3585)),
      .min_runtime = std::chrono::seconds(fields.Int("minRuntimeSeconds", 3600, 0, 86400)),
      .cooldown = std::chrono::seconds(fields.Int("cooldownSeconds", 3600, 0, 3600))};
  if (const auto gpus = fields.OptionalInt("gpusPerJob", 1, kMaxGpusPerJob)) {
    bounds.max_gpus_per_job = static_cast<int>(*gpus);
  }
  return bounds;
}

std::string ReadResourceName(Fields& fields) {
  std::string name = fields.String("resourceName", "", 253);
  if (name.empty()) return name;
  const bool is_of_kubernetes = name.contains("kubernetes.io/") || name.starts_with("requests.");
  if (!name.contains('/') || is_of_kubernetes) {
    fields.Wrong("resourceName", "not the name of an extended resource, such as nvidia.com/gpu");
  }
  return name;
}

void ReadPoolSpec(Fields& fields, GpuPoolSpec& spec) {
  fields.Object("nodeSelector", [&](Fields& f) { spec.node_selector = ReadLabelSelector(f); });
  spec.resource_name = ReadResourceName(fields);
  spec.reserved_gpus = fields.Int("reservedGpus", 0, 0, kMaxGpus);
  if (fields.Has("topologyKeys")) {
    spec.topology_keys = fields.StringList("topologyKeys", planner::kMaxTopologyKeys);
  }
  spec.scale_up = ReadEnum(fields, "scaleUp", spec.scale_up, kScaleUps);
  spec.yields_to_pending = fields.Bool("yieldToPending");
  fields.Object("bounds", [&](Fields& f) { spec.bounds = ReadBounds(f); });
}

GpuPoolStatus ReadPoolStatus(Fields& fields) {
  return {.observed_generation = fields.Long("observedGeneration", 0, 0, kMaxCount),
          .nodes = fields.Long("nodes", 0, 0, kMaxCount),
          .capacity_gpus = fields.Long("capacityGpus", 0, 0, kMaxCount),
          .allocated_gpus = fields.Long("allocatedGpus", 0, 0, kMaxCount),
          .foreign_gpus = fields.Long("foreignGpus", 0, 0, kMaxCount),
          .requested_gpus = fields.Long("requestedGpus", 0, 0, kMaxCount),
          .yielded_gpus = fields.Long("yieldedGpus", 0, 0, kMaxCount),
          .conditions = ReadConditions(fields)};
}

}  // namespace

std::string_view ToString(ScaleUp scale_up) {
  return scale_up == ScaleUp::kMinimum ? "Minimum" : "None";
}

Result<GpuPool> DecodeGpuPool(const nlohmann::json& object) {
  GpuPool pool;
  ASSIGN_OR_RETURN(pool.meta, DecodeMeta(object, "pliant.dev/"));
  // A status that is not understood is overwritten: it only reports.
  pool.unreadable = ReadSpecAndStatus(
                        object, [&](Fields& fields) { ReadPoolSpec(fields, pool.spec); },
                        [&](Fields& fields) { pool.status = ReadPoolStatus(fields); })
                        .spec;
  return pool;
}

nlohmann::json EncodeStatus(const GpuPoolStatus& status) {
  return {{"observedGeneration", status.observed_generation},
          {"nodes", status.nodes},
          {"capacityGpus", status.capacity_gpus},
          {"allocatedGpus", status.allocated_gpus},
          {"foreignGpus", status.foreign_gpus},
          {"requestedGpus", status.requested_gpus},
          {"yieldedGpus", status.yielded_gpus},
          {"conditions", EncodeConditions(status.conditions)}};
}

}  // namespace pliant::api
