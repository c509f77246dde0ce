#include "operator/api/resource_quota.h"

#include <nlohmann/json.hpp>

#include "operator/api/fields.h"
#include "operator/api/quantity.h"

namespace pliant::api {
namespace {

constexpr std::string_view kRequests = "requests.";
constexpr std::size_t kMaxQuotaResources = 1024;

}  // namespace

Result<ResourceQuota> DecodeResourceQuota(const nlohmann::json& object,
                                          const std::string& gpu_resource) {
  ResourceQuota quota;
  ASSIGN_OR_RETURN(quota.meta, DecodeMeta(object, "pliant.dev/"));
  Fields root(object);
  root.Object("spec", [&](Fields& spec) {
    if (spec.Has("scopes") || spec.Has("scopeSelector")) return;
    spec.Object("hard", [&](Fields& hard) {
      for (const std::string& name : hard.Names()) {
        // Kubernetes has quotas of extended resources for requests only.
        if (!name.starts_with(kRequests) || !name.contains('/')) continue;
        const Result<std::int64_t> amount = ParseQuantity(hard.StringOrNumber(name.c_str()));
        if (!amount) {
          hard.Wrong(name.c_str(), amount.error().message);
          continue;
        }
        const std::string resource = name.substr(kRequests.size());
        if (resource == gpu_resource) {
          quota.gpus = *amount;
        } else if (quota.others.size() < kMaxQuotaResources) {
          quota.others[resource] = *amount;
        }
      }
    });
  });
  if (root.error()) return std::unexpected(*root.error());
  return quota;
}

}  // namespace pliant::api
