#pragma once

#include <cstdint>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>

#include "base/result.h"
#include "operator/api/meta.h"

namespace pliant::api {

struct ResourceQuota {
  ObjectMeta meta;
  // GPUs that all pods of its namespace may request together. Absent: the quota does not limit
  // GPUs, or it applies to some pods only (spec.scopes, spec.scopeSelector), which may or may not
  // include learners.
  std::optional<std::int64_t> gpus;
  // The same of other extended resources, which some pools count as GPUs.
  std::map<std::string, std::int64_t> others;

  bool operator==(const ResourceQuota&) const = default;
};

// `gpu_resource`: the extended resource that counts as GPU, such as "nvidia.com/gpu".
Result<ResourceQuota> DecodeResourceQuota(const nlohmann::json& object,
                                          const std::string& gpu_resource);

}  // namespace pliant::api
