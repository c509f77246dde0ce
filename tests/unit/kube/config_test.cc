#include "operator/kube/config.h"

#include <cstdlib>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/file.h"
#include "tests/unit/kube/temp_folder.h"

namespace pliant::kube {
namespace {

using testing::HasSubstr;

constexpr const char* kKubeconfig = R"(
apiVersion: v1
kind: Config
current-context: two
clusters:
- name: far
  cluster: {server: "https://far.example:6443", certificate-authority-data: Q0E=}
- name: near
  cluster: {server: "https://10.0.0.1:6443/", certificate-authority: pki/ca.crt}
users:
- name: by-token
  user: {token: secret}
- name: by-certificate
  user: {client-certificate-data: Q0VSVA==, client-key: /etc/keys/key.pem}
contexts:
- name: one
  context: {cluster: far, user: by-token, namespace: team-a}
- name: two
  context: {cluster: near, user: by-certificate}
)";

TEST(Config, TheCurrentContextCounts) {
  const Result<Config> config = ParseKubeconfig(kKubeconfig, "/home/me/.kube");
  ASSERT_TRUE(config) << config.error();
  EXPECT_EQ(*config,
            (Config{.server = "https://10.0.0.1:6443",
                    .certificate_authority = {.text = "", .file = "/home/me/.kube/pki/ca.crt"},
                    .client_certificate = {.text = "CERT", .file = ""},
                    .client_key = {.text = "", .file = "/etc/keys/key.pem"},
                    .token = "",
                    .token_file = "",
                    .default_namespace = "default",
                    .proxy_url = "",
                    .proxy_from_environment = true}));
}

TEST(Config, TokensAndNamespaces) {
  std::string text = kKubeconfig;
  text.replace(text.find("current-context: two"), 20, "current-context: one");
  const Result<Config> config = ParseKubeconfig(text, "/");
  ASSERT_TRUE(config) << config.error();
  EXPECT_EQ(config->server, "https://far.example:6443");
  EXPECT_EQ(config->certificate_authority.text, "CA");
  EXPECT_EQ(config->token, "secret");
  EXPECT_EQ(config->default_namespace, "team-a");
}

// A kubeconfig with one cluster and one user, with these fields.
std::string Kubeconfig(const std::string& cluster, const std::string& user) {
  return "current-context: c\ncontexts: [{name: c, context: {cluster: c, user: u}}]\n"
         "clusters: [{name: c, cluster: {" +
         cluster + "}}]\nusers: [{name: u, user: {" + user + "}}]\n";
}

struct RefusedCase {
  std::string name;
  std::string text;
  std::string sentence;
};

const std::string kCa = "certificate-authority-data: Q0E=";

const RefusedCase kRefused[] = {
    {"no YAML", "a: [", "not YAML"},
    {"no map", "- 1", "not a map"},
    {"empty", "", "not a map"},
    {"no context", "clusters: []", "current-context is not set"},
    {"an unknown context", "current-context: x\ncontexts: 3", "no entry named 'x' in contexts"},
    {"no server", Kubeconfig(kCa, "token: t"), "server '' is no https URL"},
    {"no certificate authority", Kubeconfig("server: 'https://a:1'", "token: t"),
     "the cluster has no certificate-authority"},
    {"unverified", Kubeconfig("server: 'https://a', insecure-skip-tls-verify: true", "token: t"),
     "insecure-skip-tls-verify is not supported"},
    {"a credential plugin", Kubeconfig("server: 'https://a', " + kCa, "exec: {command: aws}"),
     "exec of a user is not supported: use token, tokenFile or client-certificate"},
    {"plain http", Kubeconfig("server: 'http://10.0.0.1:8080'", "token: t"), "only loopback"},
    {"a name that only begins like loopback", Kubeconfig("server: 'http://localhost.evil'", ""),
     "only loopback"},
    {"a path", Kubeconfig("server: 'https://a/b', " + kCa, ""), "scheme, host and port only"},
    {"a proxy that speaks TLS",
     Kubeconfig("server: 'https://a', proxy-url: 'https://me:secret@p', " + kCa, ""),
     "proxy-url is neither"},
    {"no base64", Kubeconfig("server: 'https://a', certificate-authority-data: '#!'", ""),
     "certificate-authority-data is no base64"},
    {"half an identity", Kubeconfig("server: 'https://a', " + kCa, "client-key: k.pem"),
     "client-certificate and client-key go together"},
};

TEST(Config, RefusesWithTheReason) {
  for (const RefusedCase& test : kRefused) {
    SCOPED_TRACE(test.name);
    const Result<Config> config = ParseKubeconfig(test.text, "/");
    ASSERT_FALSE(config);
    EXPECT_EQ(config.error().code, ErrorCode::kInvalid);
    EXPECT_THAT(config.error().message, HasSubstr(test.sentence));
  }
}

TEST(Config, AFieldThatIsNullIsAbsent) {
  const Result<Config> config =
      ParseKubeconfig(Kubeconfig("server: 'https://a', " + kCa, "token: t, exec: null"), "/");
  ASSERT_TRUE(config) << config.error();
  EXPECT_EQ(config->token, "t");
}

TEST(Config, AProxyOfTheClusterComesBeforeThatOfTheEnvironment) {
  const Result<Config> config = ParseKubeconfig(
      Kubeconfig("server: 'https://[fd00::1]:443', proxy-url: 'socks5://p:1080', " + kCa, ""), "/");
  ASSERT_TRUE(config) << config.error();
  EXPECT_EQ(config->proxy_url, "socks5://p:1080");
  EXPECT_FALSE(config->proxy_from_environment);
}

TEST(Config, PlainHttpToLoopbackIsForKubectlProxy) {
  const Result<Config> config =
      ParseKubeconfig(Kubeconfig("server: 'http://127.0.0.1:8001'", ""), "/");
  ASSERT_TRUE(config) << config.error();
  EXPECT_EQ(config->server, "http://127.0.0.1:8001");
}

TEST(Config, AFileThatIsMissingOrWrongIsNamed) {
  TempFolder folder;
  EXPECT_THAT(LoadKubeconfig(folder.path() + "/none").error().message, HasSubstr("/none"));
  const std::string file = folder.Write("config", "a: [");
  EXPECT_THAT(LoadKubeconfig(file).error().message, HasSubstr("kubeconfig " + file));
}

class InClusterTest : public testing::Test {
 protected:
  InClusterTest() {
    folder_.Write("ca.crt", "CA");
    folder_.Write("token", "T\n");
    folder_.Write("namespace", "pliant-system\n");
    setenv("KUBERNETES_SERVICE_HOST", "10.96.0.1", 1);
    setenv("KUBERNETES_SERVICE_PORT", "6443", 1);
  }
  ~InClusterTest() override {
    unsetenv("KUBERNETES_SERVICE_HOST");
    unsetenv("KUBERNETES_SERVICE_PORT");
  }
  TempFolder folder_;
};

TEST_F(InClusterTest, TakesWhatThePodFinds) {
  const Result<Config> config = LoadInClusterConfig(folder_.path());
  ASSERT_TRUE(config) << config.error();
  EXPECT_EQ(config->server, "https://10.96.0.1:6443");
  EXPECT_EQ(config->certificate_authority.file, folder_.path() + "/ca.crt");
  EXPECT_EQ(config->token_file, folder_.path() + "/token");
  EXPECT_EQ(config->default_namespace, "pliant-system");
}

TEST_F(InClusterTest, AnIpv6ServiceIsReachedByName) {
  setenv("KUBERNETES_SERVICE_HOST", "fd00::1", 1);
  EXPECT_EQ(LoadInClusterConfig(folder_.path())->server, "https://kubernetes.default.svc:6443");
}

TEST_F(InClusterTest, OutsideAPodTheErrorSaysWhatToDo) {
  unsetenv("KUBERNETES_SERVICE_HOST");
  EXPECT_THAT(LoadInClusterConfig(folder_.path()).error().message,
              HasSubstr("set --kubeconfig or KUBECONFIG"));
}

}  // namespace
}  // namespace pliant::kube
