#pragma once

#include <nlohmann/json_fwd.hpp>

#include "base/result.h"
#include "operator/api/meta.h"

namespace pliant::api {

struct Namespace {
  ObjectMeta meta;  // with all labels
  // It takes no new objects, and everything in it is being deleted.
  bool deleting = false;

  bool operator==(const Namespace&) const = default;
};

Result<Namespace> DecodeNamespace(const nlohmann::json& object);

}  // namespace pliant::api
