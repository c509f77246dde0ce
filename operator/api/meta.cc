#include "operator/api/meta.h"

#include <nlohmann/json.hpp>

#include "operator/api/fields.h"

namespace pliant::api {
namespace {

// More labels of ours than any object has. Anybody may give a pod a megabyte of them.
constexpr std::size_t kMaxLabels = 32;

void KeepLabels(const nlohmann::json& metadata, std::string_view prefix, ObjectMeta& meta) {
  const auto labels = metadata.find("labels");
  if (labels == metadata.end() || !labels->is_object()) return;
  for (const auto& [key, value] : labels->items()) {
    if (!prefix.empty() && meta.labels.size() == kMaxLabels) return;
    if (key.starts_with(prefix) && value.is_string()) meta.labels[key] = value.get<std::string>();
  }
}

}  // namespace

Result<ObjectMeta> DecodeMeta(const nlohmann::json& object, std::string_view label_prefix) {
  Fields root(object);
  ObjectMeta meta;
  root.Object("metadata", [&](Fields& fields) {
    meta.name_space = fields.String("namespace", "", 253);
    meta.name = fields.String("name", "", 253);
    meta.uid = fields.String("uid", "", 128);
    meta.resource_version = fields.String("resourceVersion", "", 128);
    meta.generation = fields.Long("generation", 0, 0, INT64_MAX);
    meta.created = fields.OptionalTime("creationTimestamp").value_or(WallTime{});
    meta.deleted = fields.OptionalTime("deletionTimestamp");
    fields.Objects("ownerReferences", 65536, [&](Fields& owner) {
      const bool is_job = owner.String("kind") == "ElasticTrainingJob" &&
                          owner.String("apiVersion").starts_with("pliant.dev/");
      if (!owner.Bool("controller") || !is_job) {
        meta.has_other_owner = true;
        return;
      }
      meta.owner_uid = owner.String("uid", "", 128);
      meta.owner_name = owner.String("name", "", 253);
    });
  });
  if (!root.error() && meta.name.empty()) root.Wrong("metadata.name", "missing");
  if (root.error()) return std::unexpected(*root.error());
  KeepLabels(object.at("metadata"), label_prefix, meta);
  return meta;
}

}  // namespace pliant::api
