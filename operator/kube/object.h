#pragma once

#include <compare>
#include <cstdint>
#include <iosfwd>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

// Common parts of all Kubernetes objects.
namespace pliant::kube {

// The key of an object among those of its kind. `ns` is empty for cluster-scoped objects.
struct NamespacedName {
  std::string ns;
  std::string name;

  auto operator<=>(const NamespacedName&) const = default;
};
std::string ToString(const NamespacedName& key);  // "team-a/resnet", or "resnet" without namespace
std::ostream& operator<<(std::ostream& out, const NamespacedName& key);

struct ObjectMeta {
  NamespacedName key;
  std::string uid;
  std::string resource_version;  // opaque: compare for equality only

  bool operator==(const ObjectMeta&) const = default;
};
// Fields that are missing, or are no strings, stay empty.
ObjectMeta MetaOf(const nlohmann::json& object);

// A kind of object, as the API server's paths name it.
struct ResourceType {
  std::string_view group;  // "" is the core group
  std::string_view version;
  std::string_view plural;  // "pods"
  std::string_view kind;    // "Pod"
  bool namespaced = true;

  bool operator==(const ResourceType&) const = default;
};
std::string ApiVersion(const ResourceType& type);  // "v1", "apps/v1"

// The kinds of Kubernetes itself that this program uses.
inline constexpr ResourceType kPods{"", "v1", "pods", "Pod"};
inline constexpr ResourceType kServices{"", "v1", "services", "Service"};
inline constexpr ResourceType kResourceQuotas{"", "v1", "resourcequotas", "ResourceQuota"};
inline constexpr ResourceType kSecrets{"", "v1", "secrets", "Secret"};
inline constexpr ResourceType kPodTemplates{"", "v1", "podtemplates", "PodTemplate"};
inline constexpr ResourceType kNodes{"", "v1", "nodes", "Node", false};
inline constexpr ResourceType kNamespaces{"", "v1", "namespaces", "Namespace", false};
inline constexpr ResourceType kLeases{"coordination.k8s.io", "v1", "leases", "Lease"};
inline constexpr ResourceType kEvents{"events.k8s.io", "v1", "events", "Event"};
inline constexpr ResourceType kNetworkPolicies{"networking.k8s.io", "v1", "networkpolicies",
                                               "NetworkPolicy"};

// The path of all objects of a kind in `ns`, or in all namespaces if it is empty; percent-encoded.
std::string CollectionPath(const ResourceType& type, std::string_view ns);
// The path of one object, or of its subresource ("status", "scale") if that is not empty.
std::string ObjectPath(const ResourceType& type, const NamespacedName& key,
                       std::string_view subresource = "");
// One value of a query, percent-encoded.
std::string QueryEscape(std::string_view value);

}  // namespace pliant::kube
