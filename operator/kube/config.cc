#include "operator/kube/config.h"

#include <cstdlib>
#include <filesystem>
#include <string_view>

#include <yaml-cpp/yaml.h>

#include "base/file.h"

namespace pliant::kube {
namespace {

std::string WithoutSpaceAtEnd(std::string text) {
  text.erase(text.find_last_not_of(" \r\n\t") + 1);
  return text;
}

std::string Environment(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

bool IsLoopback(std::string_view host) {
  return host == "localhost" || host.starts_with("127.") || host == "[::1]";
}

// Accepts scheme, host and port only: this client supports no other part of a URL.
Result<std::string> CheckServer(std::string server) {
  if (server.ends_with('/')) server.pop_back();
  const std::size_t scheme_end = server.find("://");
  const std::string_view scheme = std::string_view(server).substr(0, scheme_end);
  if (scheme_end == std::string::npos || (scheme != "https" && scheme != "http")) {
    return Invalid("server '" + server + "' is no https URL");
  }
  const std::string_view authority = std::string_view(server).substr(scheme_end + 3);
  if (authority.empty() || authority.find_first_of("/?#@") != std::string_view::npos) {
    return Invalid("server '" + server + "' has to be scheme, host and port only");
  }
  if (scheme == "http" && !IsLoopback(authority.substr(0, authority.rfind(':')))) {
    return Invalid("server '" + server + "' is plain http; only loopback may be");
  }
  return server;
}

std::string TextOf(const YAML::Node& node, const char* field) {
  const YAML::Node value = node[field];
  return value && value.IsScalar() ? value.Scalar() : "";
}

// The content of the entry called `name` in a list such as `clusters`: [{name: n, cluster: {}}].
Result<YAML::Node> Entry(const YAML::Node& root, const char* list, const char* what,
                         const std::string& name) {
  const YAML::Node entries = root[list];
  if (entries && entries.IsSequence()) {
    for (const YAML::Node& entry : entries) {
      if (!entry.IsMap() || TextOf(entry, "name") != name) continue;
      const YAML::Node content = entry[what];
      return content && content.IsMap() ? content : YAML::Node(YAML::NodeType::Map);
    }
  }
  return Invalid("no entry named '" + name + "' in " + list);
}

// `field`-data holds base64, `field` a file name relative to the kubeconfig's folder.
Result<PemSource> Pem(const YAML::Node& node, const std::string& field, const std::string& folder) {
  if (const YAML::Node data = node[field + "-data"]) {
    if (!data.IsScalar()) return Invalid(field + "-data is no text");
    try {
      const auto bytes = data.as<YAML::Binary>();
      return PemSource{.text = std::string(bytes.data(), bytes.data() + bytes.size()), .file = ""};
    } catch (const YAML::Exception&) {
      return Invalid(field + "-data is no base64");
    }
  }
  const std::string file = TextOf(node, field.c_str());
  if (file.empty()) return PemSource{};
  return PemSource{.text = "", .file = (std::filesystem::path(folder) / file).string()};
}

Status RefuseUnsupported(const YAML::Node& cluster, const YAML::Node& user) {
  if (TextOf(cluster, "insecure-skip-tls-verify") == "true") {
    return Invalid(
        "insecure-skip-tls-verify is not supported: put the cluster's certificate authority in "
        "certificate-authority or certificate-authority-data");
  }
  if (cluster["tls-server-name"]) return Invalid("tls-server-name of a cluster is not supported");
  for (const char* field : {"auth-provider", "exec", "username", "as"}) {
    if (const YAML::Node value = user[field]; value && !value.IsNull()) {
      return Invalid(std::string(field) +
                     " of a user is not supported: use token, tokenFile or client-certificate");
    }
  }
  return {};
}

// Proxies that speak TLS are not supported: they would need a certificate from the cluster's
// authority.
Result<std::string> CheckProxy(std::string proxy) {
  if (proxy.empty() || proxy.starts_with("http://") || proxy.starts_with("socks5://")) return proxy;
  return Invalid("proxy-url is neither an http:// nor a socks5:// URL");  // it may hold a password
}

Result<Config> FromYaml(const YAML::Node& root, const std::string& folder) {
  if (!root.IsMap()) return Invalid("not a map of clusters, users and contexts");
  const std::string context_name = TextOf(root, "current-context");
  if (context_name.empty()) return Invalid("current-context is not set");
  ASSIGN_OR_RETURN(const YAML::Node context, Entry(root, "contexts", "context", context_name));
  ASSIGN_OR_RETURN(const YAML::Node cluster,
                   Entry(root, "clusters", "cluster", TextOf(context, "cluster")));
  ASSIGN_OR_RETURN(const YAML::Node user, Entry(root, "users", "user", TextOf(context, "user")));
  RETURN_IF_ERROR(RefuseUnsupported(cluster, user));

  Config config;
  ASSIGN_OR_RETURN(config.server, CheckServer(TextOf(cluster, "server")));
  ASSIGN_OR_RETURN(config.certificate_authority, Pem(cluster, "certificate-authority", folder));
  ASSIGN_OR_RETURN(config.client_certificate, Pem(user, "client-certificate", folder));
  ASSIGN_OR_RETURN(config.client_key, Pem(user, "client-key", folder));
  config.token = TextOf(user, "token");
  if (const std::string file = TextOf(user, "tokenFile"); !file.empty()) {
    config.token_file = (std::filesystem::path(folder) / file).string();
  }
  ASSIGN_OR_RETURN(config.proxy_url, CheckProxy(TextOf(cluster, "proxy-url")));
  config.proxy_from_environment = config.proxy_url.empty();
  config.default_namespace = TextOf(context, "namespace");
  if (config.default_namespace.empty()) config.default_namespace = "default";

  if (config.server.starts_with("https") && config.certificate_authority.empty()) {
    return Invalid("the cluster has no certificate-authority");
  }
  if (config.client_certificate.empty() != config.client_key.empty()) {
    return Invalid("client-certificate and client-key go together");
  }
  return config;
}

}  // namespace

Result<std::string> PemSource::Read() const {
  if (!text.empty() || file.empty()) return text;
  return ReadFile(file);
}

Result<Config> ParseKubeconfig(const std::string& text, const std::string& folder) {
  try {
    return FromYaml(YAML::Load(text), folder);
  } catch (const YAML::Exception& error) {
    return Invalid("not YAML: " + std::string(error.what()));
  }
}

Result<Config> LoadKubeconfig(const std::string& file) {
  ASSIGN_OR_RETURN(const std::string text, ReadFile(file));
  const std::string folder = std::filesystem::absolute(file).parent_path().string();
  Result<Config> config = ParseKubeconfig(text, folder);
  if (!config) return std::unexpected(InContext("kubeconfig " + file, std::move(config).error()));
  return config;
}

Result<Config> LoadInClusterConfig(const std::string& account_folder) {
  std::string host = Environment("KUBERNETES_SERVICE_HOST");
  std::string port = Environment("KUBERNETES_SERVICE_PORT");
  if (host.empty()) {
    return Invalid(
        "KUBERNETES_SERVICE_HOST is not set: this is not a pod; set --kubeconfig or KUBECONFIG");
  }
  if (host.find(':') != std::string::npos) host = "kubernetes.default.svc";
  if (port.empty()) port = "443";
  Config config{.server = "https://" + host + ":" + port,
                .certificate_authority = {.text = "", .file = account_folder + "/ca.crt"},
                .token_file = account_folder + "/token",
                .proxy_from_environment = true};
  RETURN_IF_ERROR(config.certificate_authority.Read());
  RETURN_IF_ERROR(ReadFile(config.token_file));
  ASSIGN_OR_RETURN(config.default_namespace, ReadFile(account_folder + "/namespace"));
  config.default_namespace = WithoutSpaceAtEnd(config.default_namespace);
  return config;
}

Result<Config> LoadConfig(const std::string& kubeconfig) {
  if (!kubeconfig.empty()) return LoadKubeconfig(kubeconfig);
  if (const std::string file = Environment("KUBECONFIG"); !file.empty()) {
    return LoadKubeconfig(file);
  }
  return LoadInClusterConfig();
}

}  // namespace pliant::kube
