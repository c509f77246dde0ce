#pragma once

#include <cstdint>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>

#include "base/result.h"
#include "operator/api/time.h"

namespace pliant::api {

struct ObjectMeta {
  std::string name_space;  // empty for cluster-scoped objects
  std::string name;
  std::string uid;
  std::string resource_version;  // opaque: compare for equality only
  std::int64_t generation = 0;
  WallTime created;
  std::optional<WallTime> deleted;            // when its deletion is due; it lives on until then
  std::map<std::string, std::string> labels;  // only those that the kind's decoder keeps
  // Of the ElasticTrainingJob that says to control it; empty: none does. Anybody who may make the
  // object may write this.
  std::string owner_uid;
  std::string owner_name;

  bool operator==(const ObjectMeta&) const = default;
};

// kInvalid if `object` is no JSON object with a metadata.name. `label_prefix`: the labels to keep.
Result<ObjectMeta> DecodeMeta(const nlohmann::json& object, std::string_view label_prefix);

}  // namespace pliant::api
