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
  // deletionTimestamp: when deletion is due; the object exists until then
  std::optional<WallTime> deleted;
  std::map<std::string, std::string> labels;  // only those that the decoder of this kind keeps
  // The ElasticTrainingJob named as its controller; empty: none. Not trusted: anyone who may create
  // the object can write this.
  std::string owner_uid;
  std::string owner_name;
  bool has_other_owner = false;  // besides that one

  bool operator==(const ObjectMeta&) const = default;
};

// kInvalid if `object` is no JSON object with a metadata.name. Only labels that begin with
// `label_prefix` are kept.
Result<ObjectMeta> DecodeMeta(const nlohmann::json& object, std::string_view label_prefix);

}  // namespace pliant::api
