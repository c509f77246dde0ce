#include "operator/kube/object.h"

#include <nlohmann/json.hpp>
#include <ostream>

#include "operator/kube/json_fields.h"

namespace pliant::kube {
namespace {

// RFC 3986 §2.3: characters that need no escaping anywhere in a URL.
bool IsUnreserved(char c) {
  return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-' ||
         c == '.' || c == '_' || c == '~';
}

}  // namespace

std::string ToString(const NamespacedName& key) {
  return key.ns.empty() ? key.name : key.ns + "/" + key.name;
}

std::ostream& operator<<(std::ostream& out, const NamespacedName& key) {
  return out << ToString(key);
}

ObjectMeta MetaOf(const nlohmann::json& object) {
  if (!object.is_object()) return {};
  const auto metadata = object.find("metadata");
  if (metadata == object.end() || !metadata->is_object()) return {};
  return {.key = {.ns = StringAt(*metadata, "namespace"), .name = StringAt(*metadata, "name")},
          .uid = StringAt(*metadata, "uid"),
          .resource_version = StringAt(*metadata, "resourceVersion")};
}

std::string ApiVersion(const ResourceType& type) {
  const std::string version(type.version);
  return type.group.empty() ? version : std::string(type.group) + "/" + version;
}

std::string CollectionPath(const ResourceType& type, std::string_view ns) {
  std::string path = type.group.empty() ? "/api/" : "/apis/";
  path += ApiVersion(type);
  if (!ns.empty()) path += "/namespaces/" + QueryEscape(ns);
  return path + "/" + std::string(type.plural);
}

std::string ObjectPath(const ResourceType& type, const NamespacedName& key,
                       std::string_view subresource) {
  std::string path = CollectionPath(type, type.namespaced ? std::string_view(key.ns) : "");
  path += "/" + QueryEscape(key.name);
  if (!subresource.empty()) path += "/" + std::string(subresource);
  return path;
}

std::string QueryEscape(std::string_view value) {
  static constexpr std::string_view kHex = "0123456789ABCDEF";
  std::string escaped;
  escaped.reserve(value.size());
  for (const char c : value) {
    if (IsUnreserved(c)) {
      escaped += c;
      continue;
    }
    const auto byte = static_cast<unsigned char>(c);
    escaped += '%';
    escaped += kHex[byte >> 4];
    escaped += kHex[byte & 15];
  }
  return escaped;
}

}  // namespace pliant::kube
