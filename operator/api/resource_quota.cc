#include "operator/api/resource_quota.h"

#include <nlohmann/json.hpp>

#include "operator/api/fields.h"
#include "operator/api/quantity.h"

namespace pliant::api {

Result<ResourceQuota> DecodeResourceQuota(const nlohmann::json& object,
                                          const std::string& gpu_resource) {
  ResourceQuota quota;
  ASSIGN_OR_RETURN(quota.meta, DecodeMeta(object, "pliant.dev/"));
  Fields root(object);
  root.Object("spec", [&](Fields& spec) {
    if (spec.Has("scopes") || spec.Has("scopeSelector")) return;
    spec.Object("hard", [&](Fields& hard) {
      // Kubernetes has quotas of extended resources for requests only.
      const std::string name = "requests." + gpu_resource;
      const std::string text = hard.StringOrNumber(name.c_str());
      if (text.empty()) return;
      if (const Result<std::int64_t> gpus = ParseQuantity(text)) {
        quota.gpus = *gpus;
      } else {
        hard.Wrong(name.c_str(), gpus.error().message);
      }
    });
  });
  if (root.error()) return std::unexpected(*root.error());
  return quota;
}

}  // namespace pliant::api
