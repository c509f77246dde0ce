#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>

#include "base/result.h"
#include "operator/api/meta.h"

namespace pliant::api {

struct ResourceQuota {
  ObjectMeta meta;
  // That all pods of its namespace may ask for together; nothing: it says nothing of GPUs, or it is
  // of some pods only (spec.scopes, spec.scopeSelector), which learners may or may not be.
  std::optional<std::int64_t> gpus;

  bool operator==(const ResourceQuota&) const = default;
};

// `gpu_resource`: the extended resource that counts as GPU, such as "nvidia.com/gpu".
Result<ResourceQuota> DecodeResourceQuota(const nlohmann::json& object,
                                          const std::string& gpu_resource);

}  // namespace pliant::api
