#include "tests/integration/api_server.h"

#include <thread>

#include <unistd.h>

#include "base/format.h"
#include "tests/kube/kinds.h"
#include "tests/kube/yaml_objects.h"

namespace pliant::kube {
namespace {
using namespace std::chrono_literals;
using nlohmann::json;

constexpr ResourceType kServiceAccounts{"", "v1", "serviceaccounts", "ServiceAccount"};

// Unique among tests, programs and runs.
std::string UniqueNamespace() {
  static int made = 0;
  const auto milliseconds = std::chrono::duration_cast<std::chrono::milliseconds>(
      std::chrono::system_clock::now().time_since_epoch());
  return Format("test-{:x}-{}-{}", milliseconds.count(), getpid(), ++made);
}

bool IsServed(const json& definition) {
  for (const json& condition :
       definition.value("status", json::object()).value("conditions", json::array())) {
    if (condition.at("type") == "Established" && condition.at("status") == "True") return true;
  }
  return false;
}

}  // namespace

bool WaitUntil(const std::function<bool()>& condition, std::chrono::milliseconds limit) {
  const auto deadline = std::chrono::steady_clock::now() + limit;
  while (!condition()) {
    if (std::chrono::steady_clock::now() >= deadline) return false;
    std::this_thread::sleep_for(20ms);
  }
  return true;
}

void ApiServerTest::SetUp() {
  auto config = ConfigOfServer();
  ASSERT_TRUE(config) << config.error();
  config_ = *std::move(config);
  auto transport = Connect(config_);
  ASSERT_TRUE(transport) << transport.error();
  transport_ = *std::move(transport);
  client_ = std::make_unique<KubeClient>(
      *transport_, config_,
      ClientOptions{.requests_per_second = 0, .write_deadline = std::chrono::seconds(30)});
  ns_ = UniqueNamespace();
  const auto made = client_->Create(kNamespaces, {{"metadata", {{"name", ns_}}}});
  ASSERT_TRUE(made) << made.error();
  // Until the controller manager has created their service account, pods are refused.
  ASSERT_TRUE(WaitUntil([&] {
    return client_->Get(kServiceAccounts, {ns_, "default"}).has_value();
  })) << "the controller manager does not run";
}

void ApiServerTest::TearDown() {
  if (ns_.empty()) return;  // there is no server
  for (const ResourceType& type : delete_at_end_) std::ignore = client_->Delete(type, {"", ns_});
  std::ignore = client_->Delete(kNamespaces, {"", ns_});
}

std::string ApiServerTest::Refusal(const ResourceType& type, const json& object) {
  const auto made = client().Create(type, object, {.dry_run = true});
  return made ? "" : made.error().message;
}

std::string ApiServerTest::RefusalOfChange(const ResourceType& type, const NamespacedName& key,
                                           const json& patch) {
  const auto changed = client().Patch(type, key, patch, {.dry_run = true});
  return changed ? "" : changed.error().message;
}

void ApiServerTest::Install(const json& definition) {
  const NamespacedName key = MetaOf(definition).key;
  const auto put = PutDefinition(*client_, definition);
  ASSERT_TRUE(put) << put.error();
  ASSERT_TRUE(WaitUntil([&] {
    auto installed = client_->Get(kCustomResourceDefinitions, key);
    return installed && IsServed(*installed);
  }));
  const json& spec = definition.at("spec");
  const auto group = spec["group"].get<std::string>();
  const auto version = spec["versions"][0]["name"].get<std::string>();
  const auto plural = spec["names"]["plural"].get<std::string>();
  const ResourceType type{group, version, plural, ""};
  ASSERT_TRUE(WaitUntil([&] { return client_->List(type, "").has_value(); }));
}

void ApiServerTest::InstallOwnKinds() {
  const auto definitions = LoadDefinitions();
  ASSERT_TRUE(definitions) << definitions.error();
  for (const json& definition : *definitions) Install(definition);
}

}  // namespace pliant::kube
