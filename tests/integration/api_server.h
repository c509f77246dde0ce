#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>

#include <gtest/gtest.h>

#include "operator/kube/client.h"
#include "operator/kube/config.h"
#include "operator/kube/http_transport.h"

namespace pliant::kube {

// Polls until `condition` holds. Whether it came to hold within `limit`.
bool WaitUntil(const std::function<bool()>& condition,
               std::chrono::milliseconds limit = std::chrono::seconds(30));

// A test against an API server, in a namespace of its own. Which server that is, the program's
// sources say: real_api_server.cc takes the one that $PLIANT_TEST_KUBECONFIG names,
// memory_server.cc one in memory. Without a server the test fails: it is run to be sure.
class ApiServerTest : public testing::Test {
 protected:
  void SetUp() override;
  void TearDown() override;

  // A connection of its own to the server, as whom `config` says.
  static Result<std::unique_ptr<HttpTransport>> Connect(const Config& config);

  KubeClient& client() { return *client_; }
  HttpTransport& transport() { return *transport_; }
  const Config& config() const { return config_; }
  const std::string& ns() const { return ns_; }
  NamespacedName Key(const std::string& name) const { return {ns_, name}; }

  // Objects of this namespace.
  nlohmann::json Meta(const std::string& name) const {
    return {{"namespace", ns_}, {"name", name}};
  }
  nlohmann::json ConfigMap(const std::string& name, const std::string& value = "x") const {
    return {{"metadata", Meta(name)}, {"data", {{"value", value}}}};
  }

  // Creates the definition, or makes it what is given, and waits until its kind is served.
  void Install(const nlohmann::json& definition);

 private:
  static Result<Config> ConfigOfServer();

  Config config_;
  std::unique_ptr<HttpTransport> transport_;
  std::unique_ptr<KubeClient> client_;
  std::string ns_;
};

}  // namespace pliant::kube
