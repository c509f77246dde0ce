#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>

namespace pliant::kube {

// The path and query of a request to an API server, parsed.
struct RequestTarget {
  std::string group_version;  // "/api/v1", "/apis/apps/v1"
  std::string ns;             // "" for all namespaces, and for kinds without namespace
  std::string plural;         // "pods"
  std::string name;           // "" for a collection
  std::string subresource;    // "status"
  std::map<std::string, std::string> query;

  // "/api/v1/namespaces/a/pods", followed by "/NAME" for one object.
  std::string Collection() const;
  std::string Path() const { return name.empty() ? Collection() : Collection() + "/" + name; }
  std::string Query(const std::string& key) const;
};

// nullopt if it is not a valid target.
std::optional<RequestTarget> ParseTarget(std::string_view target);

// Whether the object at `path` belongs to a collection ("/api/v1/pods" holds those of all
// namespaces).
bool IsIn(std::string_view collection, std::string_view path);

}  // namespace pliant::kube
