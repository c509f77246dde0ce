#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "operator/kube/client.h"
#include "operator/kube/config.h"
#include "operator/kube/http_transport.h"

namespace pliant::kube {

// Polls until `condition` holds. Returns whether it held within `limit`.
bool WaitUntil(const std::function<bool()>& condition,
               std::chrono::milliseconds limit = std::chrono::seconds(30));

// A test against an API server, in a namespace of its own. The program's sources select the server:
// real_api_server.cc connects to the one that $PLIANT_TEST_KUBECONFIG names, memory_server.cc to
// one in memory. Without a server the test fails instead of being skipped.
class ApiServerTest : public testing::Test {
 protected:
  void SetUp() override;
  void TearDown() override;

  // A new connection to the server, with the identity of `config`.
  static Result<std::unique_ptr<HttpTransport>> Connect(const Config& config);

  KubeClient& client() { return *client_; }
  HttpTransport& transport() { return *transport_; }
  const Config& config() const { return config_; }
  const std::string& ns() const { return ns_; }
  NamespacedName Key(const std::string& name) const { return {ns_, name}; }

  // Metadata of an object in the test's namespace.
  nlohmann::json Meta(const std::string& name) const {
    return {{"namespace", ns_}, {"name", name}};
  }
  nlohmann::json ConfigMap(const std::string& name, const std::string& value = "x") const {
    return {{"metadata", Meta(name)}, {"data", {{"value", value}}}};
  }

  // The message with which the server refuses an object, or a merge patch of a stored one; "" if it
  // would accept it. Nothing is stored.
  std::string Refusal(const ResourceType& type, const nlohmann::json& object);
  std::string RefusalOfChange(const ResourceType& type, const NamespacedName& key,
                              const nlohmann::json& patch);

  // The object of this kind that is named like the test's namespace is deleted after the test: the
  // namespace does not hold it.
  void DeleteAtEnd(const ResourceType& type) { delete_at_end_.push_back(type); }

  // Creates or updates the definition, and waits until its kind is served.
  void Install(const nlohmann::json& definition);
  void InstallOwnKinds();  // crds/

 private:
  static Result<Config> ConfigOfServer();

  Config config_;
  std::unique_ptr<HttpTransport> transport_;
  std::unique_ptr<KubeClient> client_;
  std::string ns_;
  std::vector<ResourceType> delete_at_end_;
};

}  // namespace pliant::kube
