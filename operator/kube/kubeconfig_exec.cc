#include "operator/kube/kubeconfig_exec.h"

#include <filesystem>
#include <nlohmann/json.hpp>
#include <utility>

#include <yaml-cpp/yaml.h>

namespace pliant::kube {
namespace {

using nlohmann::json;

constexpr const char* kGroup = "client.authentication.k8s.io/";
constexpr const char* kExtension = "client.authentication.k8s.io/exec";

std::unexpected<Error> Wrong(const std::string& field, const std::string& what) {
  return Invalid("users[].user.exec." + field + " " + what);
}

// "" if it is absent or null, as tools write what they leave out.
Result<std::string> Text(const YAML::Node& exec, const char* field) {
  const YAML::Node value = exec[field];
  if (!value || value.IsNull()) return std::string();
  if (!value.IsScalar()) return Wrong(field, "is no text");
  return value.Scalar();
}

Result<std::vector<std::string>> Arguments(const YAML::Node& list) {
  std::vector<std::string> arguments;
  if (!list || list.IsNull()) return arguments;
  if (!list.IsSequence()) return Wrong("args", "is no list");
  for (const YAML::Node& argument : list) {
    if (!argument.IsScalar()) return Wrong("args", "holds what is no text");
    arguments.push_back(argument.Scalar());
  }
  return arguments;
}

Result<std::vector<std::string>> Environment(const YAML::Node& list) {
  std::vector<std::string> environment;
  if (!list || list.IsNull()) return environment;
  if (!list.IsSequence()) return Wrong("env", "is no list");
  for (const YAML::Node& variable : list) {
    const YAML::Node name = variable.IsMap() ? variable["name"] : YAML::Node();
    const YAML::Node value = variable.IsMap() ? variable["value"] : YAML::Node();
    if (!name || !name.IsScalar() || name.Scalar().empty() || name.Scalar().contains('=') ||
        !value || !value.IsScalar()) {
      return Wrong("env", "has an entry without name and value");
    }
    environment.push_back(name.Scalar() + "=" + value.Scalar());
  }
  return environment;
}

// Plain scalars mean what they mean in JSON; quoted ones are text.
json JsonOfScalar(const YAML::Node& scalar) {
  const std::string& text = scalar.Scalar();
  if (scalar.Tag() == "!") return text;
  const json value = json::parse(text, nullptr, /*allow_exceptions=*/false);
  return value.is_primitive() && !value.is_discarded() && !value.is_string() ? value : json(text);
}

json JsonOf(const YAML::Node& node) {
  if (node.IsScalar()) return JsonOfScalar(node);
  if (node.IsSequence()) {
    json list = json::array();
    for (const YAML::Node& element : node) list.push_back(JsonOf(element));
    return list;
  }
  if (node.IsMap()) {
    json map = json::object();
    for (const auto& entry : node) map[entry.first.as<std::string>()] = JsonOf(entry.second);
    return map;
  }
  return nullptr;
}

// What a plugin that asks for it is told of the cluster.
Result<json> ClusterInfo(const YAML::Node& cluster, const Config& config) {
  json info = {{"server", config.server}};
  ASSIGN_OR_RETURN(const std::string authority, config.certificate_authority.Read());
  if (!authority.empty()) {
    info["certificate-authority-data"] = YAML::EncodeBase64(
        reinterpret_cast<const unsigned char*>(authority.data()), authority.size());
  }
  if (!config.proxy_url.empty()) info["proxy-url"] = config.proxy_url;
  const YAML::Node extensions = cluster["extensions"];
  if (!extensions || !extensions.IsSequence()) return info;
  for (const YAML::Node& extension : extensions) {
    if (!extension.IsMap() || !extension["name"] || !extension["name"].IsScalar()) continue;
    if (extension["name"].Scalar() == kExtension) info["config"] = JsonOf(extension["extension"]);
  }
  return info;
}

Status CheckVersion(const std::string& version) {
  if (version == kGroup + std::string("v1") || version == kGroup + std::string("v1beta1")) {
    return {};
  }
  if (version == kGroup + std::string("v1alpha1")) {
    return Wrong("apiVersion", version +
                                   " is no longer supported: update the plugin, and have it write "
                                   "the kubeconfig anew");
  }
  return Wrong("apiVersion",
               "'" + version + "' is neither " + kGroup + "v1 nor " + kGroup + "v1beta1");
}

Status CheckMode(const std::string& mode, const std::string& version) {
  if (mode == "Never" || mode == "IfAvailable") return {};
  if (mode == "Always") {
    return Wrong("interactiveMode",
                 "is Always, but nobody is there to answer: use a plugin that can do without");
  }
  if (mode.empty() && version.ends_with("/v1beta1")) return {};
  if (mode.empty()) return Wrong("interactiveMode", "is missing: write Never or IfAvailable");
  return Wrong("interactiveMode", "'" + mode + "' is neither Never nor IfAvailable nor Always");
}

}  // namespace

Result<ExecPlugin> ParseExec(const YAML::Node& exec, const YAML::Node& cluster,
                             const Config& config, const std::string& folder) {
  if (!exec.IsMap()) return Invalid("users[].user.exec is no map");
  ExecPlugin plugin;
  ASSIGN_OR_RETURN(plugin.api_version, Text(exec, "apiVersion"));
  RETURN_IF_ERROR(CheckVersion(plugin.api_version));
  ASSIGN_OR_RETURN(const std::string mode, Text(exec, "interactiveMode"));
  RETURN_IF_ERROR(CheckMode(mode, plugin.api_version));
  ASSIGN_OR_RETURN(plugin.install_hint, Text(exec, "installHint"));
  ASSIGN_OR_RETURN(plugin.command.program, Text(exec, "command"));
  if (plugin.command.program.empty()) return Wrong("command", "is missing");
  if (plugin.command.program.contains('/')) {
    plugin.command.program = (std::filesystem::path(folder) / plugin.command.program).string();
  }
  ASSIGN_OR_RETURN(plugin.command.arguments, Arguments(exec["args"]));
  ASSIGN_OR_RETURN(plugin.command.environment, Environment(exec["env"]));

  json spec = {{"interactive", false}};
  ASSIGN_OR_RETURN(const std::string wants_cluster, Text(exec, "provideClusterInfo"));
  if (wants_cluster == "true") {
    ASSIGN_OR_RETURN(spec["cluster"], ClusterInfo(cluster, config));
  }
  const json info = {
      {"kind", "ExecCredential"}, {"apiVersion", plugin.api_version}, {"spec", std::move(spec)}};
  plugin.command.environment.push_back("KUBERNETES_EXEC_INFO=" +
                                       info.dump(-1, ' ', false, json::error_handler_t::replace));
  return plugin;
}

}  // namespace pliant::kube
