#include "tests/simulation/operator/objects.h"

#include <nlohmann/json.hpp>

#include "base/format.h"
#include "operator/controller/model/names.h"

namespace pliant::operator_sim {
namespace {

std::string NamespaceOf(const nlohmann::json& object) {
  return object.at("metadata").value("namespace", "");
}

}  // namespace

std::string JobNamed(const kube::NamespacedName& key) {
  return key.ns == kSecondNamespace ? ToString(key) : key.name;
}

kube::NamespacedName KeyOf(const std::string& job) {
  const std::size_t slash = job.find('/');
  if (slash == std::string::npos) return {kNamespace, job};
  return {job.substr(0, slash), job.substr(slash + 1)};
}

std::string PathOf(const std::string& job) {
  const auto [ns, name] = KeyOf(job);
  return Format("/apis/pliant.dev/v1alpha1/namespaces/{}/elastictrainingjobs/{}", ns, name);
}

std::string JobOf(const nlohmann::json& object) {
  const nlohmann::json& metadata = object.at("metadata");
  const nlohmann::json labels = metadata.value("labels", nlohmann::json::object());
  const std::string name = labels.value(std::string(controller::kLabelJob), "");
  return JobNamed(
      {NamespaceOf(object), name.empty() ? metadata.at("name").get<std::string>() : name});
}

bool IsAmongJobs(const nlohmann::json& object) {
  const std::string ns = NamespaceOf(object);
  return ns == kNamespace || ns == kSecondNamespace;
}

std::string UidOf(const nlohmann::json& object) { return object.at("metadata").at("uid"); }

}  // namespace pliant::operator_sim
