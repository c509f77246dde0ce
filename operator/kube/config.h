#pragma once

#include <string>
#include <string_view>

#include "base/result.h"

namespace pliant::kube {

// PEM text, either inline in the configuration or in a file that may be replaced while we run.
struct PemSource {
  std::string text;
  std::string file;  // read each time if `text` is empty

  bool empty() const { return text.empty() && file.empty(); }
  Result<std::string> Read() const;
  bool operator==(const PemSource&) const = default;
};

// How to reach one API server, and the credentials for it.
struct Config {
  std::string server;  // "https://10.0.0.1:6443": scheme, host and port only
  PemSource certificate_authority;
  PemSource client_certificate;  // set together with the key, or both empty
  PemSource client_key;
  bool tls_1_3_only = false;  // otherwise also TLS 1.2
  std::string token;
  std::string token_file;  // preferred to `token`; read repeatedly, as the kubelet rotates it
  std::string default_namespace;  // of the context or of the pod; "default" if neither sets it
  std::string proxy_url;  // "http://proxy:3128" or "socks5://..."; empty: see the next field
  bool proxy_from_environment = false;  // $HTTPS_PROXY, unless $NO_PROXY names the server

  bool operator==(const Config&) const = default;
};

// Reads the current context of a kubeconfig file. kInvalid names the part that is missing, wrong or
// not supported. Not supported: unverified certificates, user names and passwords, credential
// plugins, impersonation, and plain http except to loopback.
Result<Config> LoadKubeconfig(const std::string& file);
// The same from the text of a kubeconfig; relative file names are relative to `folder`.
Result<Config> ParseKubeconfig(const std::string& text, const std::string& folder);

// The in-cluster configuration of a pod: the service account's token, namespace and certificate
// authority, and the server's address (its name on IPv6 clusters, because cpprestsdk accepts no
// IPv6 literals).
Result<Config> LoadInClusterConfig(
    const std::string& account_folder = "/var/run/secrets/kubernetes.io/serviceaccount");

// `kubeconfig` if it is not empty, else $KUBECONFIG, else in-cluster.
Result<Config> LoadConfig(const std::string& kubeconfig);

}  // namespace pliant::kube
