#include "operator/controller/actions/idempotent_calls.h"

#include <nlohmann/json.hpp>

namespace pliant::controller {

kube::KubeStatus DeleteIfPresent(kube::KubeClient& client, const kube::ResourceType& type,
                                 const kube::NamespacedName& key, const std::string& uid) {
  const auto deleted = client.Delete(type, key, {.uid = uid});
  const bool is_gone = !deleted && (deleted.error().code == ErrorCode::kNotFound ||
                                    deleted.error().code == ErrorCode::kConflict);
  return is_gone ? kube::KubeStatus() : deleted;
}

kube::KubeStatus CreateIfAbsent(kube::KubeClient& client, const kube::ResourceType& type,
                                const nlohmann::json& object) {
  const auto created = client.Create(type, object);
  if (created || created.error().code == ErrorCode::kAlreadyExists) return {};
  return std::unexpected(created.error());
}

bool ConcernsOneObject(const kube::KubeError& error) {
  return error.code == ErrorCode::kInvalid || error.code == ErrorCode::kDenied;
}

}  // namespace pliant::controller
