// The client against a real API server: the meaning of its answers, and the effect of our requests.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/integration/api_server.h"
#include "tests/integration/widgets.h"
#include "tests/kube/kinds.h"

namespace pliant::kube {
namespace {
using namespace std::chrono_literals;

using nlohmann::json;
using testing::HasSubstr;

class KubeClientTest : public ApiServerTest {};

json Pod(const json& meta, const json& containers) {
  return {{"metadata", meta}, {"spec", {{"containers", containers}}}};
}

TEST_F(KubeClientTest, AnObjectsLife) {
  const auto made = client().Create(kConfigMaps, ConfigMap("a", "one"));
  ASSERT_TRUE(made) << made.error();
  const ObjectMeta first = MetaOf(*made);
  EXPECT_EQ(first.key, Key("a"));
  EXPECT_FALSE(first.uid.empty());
  EXPECT_EQ(client().Create(kConfigMaps, ConfigMap("a")).error().code, ErrorCode::kAlreadyExists);

  json changed = *made;
  changed["data"]["value"] = "two";
  ASSERT_TRUE(client().Update(kConfigMaps, changed));
  EXPECT_EQ(client().Update(kConfigMaps, changed).error().code, ErrorCode::kConflict)
      << "the object has changed since";
  EXPECT_EQ((*client().Get(kConfigMaps, Key("a")))["data"]["value"], "two");

  const auto wrong_uid = client().Delete(kConfigMaps, Key("a"), {.uid = "of-another"});
  EXPECT_EQ(wrong_uid.error().code, ErrorCode::kConflict);
  const auto old =
      client().Delete(kConfigMaps, Key("a"), {.resource_version = first.resource_version});
  EXPECT_EQ(old.error().code, ErrorCode::kConflict);
  EXPECT_TRUE(client().Delete(kConfigMaps, Key("a"), {.uid = first.uid}));
  EXPECT_EQ(client().Get(kConfigMaps, Key("a")).error().code, ErrorCode::kNotFound);
  EXPECT_EQ(client().Delete(kConfigMaps, Key("a")).error().code, ErrorCode::kNotFound);
}

TEST_F(KubeClientTest, APatchIsMergedOnTheVersionThatWasRead) {
  const auto made = client().Create(kConfigMaps, ConfigMap("a", "one"));
  ASSERT_TRUE(made) << made.error();
  const auto merged =
      client().Patch(kConfigMaps, Key("a"),
                     {{"metadata", {{"resourceVersion", MetaOf(*made).resource_version}}},
                      {"data", {{"value", nullptr}, {"other", "two"}}}});
  ASSERT_TRUE(merged) << merged.error();
  EXPECT_EQ((*merged)["data"], (json{{"other", "two"}}));
  const auto stale =
      client().Patch(kConfigMaps, Key("a"),
                     {{"metadata", {{"resourceVersion", MetaOf(*made).resource_version}}},
                      {"data", {{"other", "three"}}}});
  EXPECT_EQ(stale.error().code, ErrorCode::kConflict);
}

TEST_F(KubeClientTest, AWrongObjectIsRefusedWithItsFieldNamed) {
  const auto refused = client().Create(kPods, Pod(Meta("p"), json::array()));
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::kInvalid);
  EXPECT_THAT(refused.error().message, HasSubstr("spec.containers"));
}

TEST_F(KubeClientTest, ADryRunChecksAndKeepsNothing) {
  const json good = Pod(Meta("p"), json::array({{{"name", "c"}, {"image", "i"}}}));
  const auto accepted = client().Create(kPods, good, {.dry_run = true});
  ASSERT_TRUE(accepted) << accepted.error();
  EXPECT_EQ(client().Get(kPods, Key("p")).error().code, ErrorCode::kNotFound);
  const json bad = Pod(Meta("p"), json::array({{{"name", "NOT VALID"}, {"image", "i"}}}));
  EXPECT_EQ(client().Create(kPods, bad, {.dry_run = true}).error().code, ErrorCode::kInvalid);
}

TEST_F(KubeClientTest, ATokenThatNobodyKnowsIsDenied) {
  Config stranger = config();
  stranger.client_certificate = {};
  stranger.client_key = {};
  stranger.token = "nonsense";
  const auto transport = Connect(stranger);
  ASSERT_TRUE(transport) << transport.error();
  KubeClient client(**transport, stranger);
  const auto refused = client.List(kPods, ns());
  EXPECT_EQ(refused.error().code, ErrorCode::kDenied);
  EXPECT_EQ(refused.error().http_status, 401);
}

TEST_F(KubeClientTest, ListsPagesAndSelects) {
  for (int i = 0; i < 7; ++i) {
    json object = ConfigMap("c" + std::to_string(i));
    object["metadata"]["labels"] = {{"parity", i % 2 == 0 ? "even" : "odd"}};
    ASSERT_TRUE(client().Create(kConfigMaps, object));
  }
  const auto page = client().List(kConfigMaps, ns(), {.label_selector = "parity", .limit = 3});
  ASSERT_TRUE(page) << page.error();
  EXPECT_EQ(page->items.size(), 3u);
  EXPECT_FALSE(page->continue_token.empty());
  const auto rest = client().List(
      kConfigMaps, ns(), {.label_selector = "parity", .continue_token = page->continue_token});
  ASSERT_TRUE(rest) << rest.error();
  EXPECT_EQ(rest->items.size(), 4u);
  EXPECT_EQ(rest->continue_token, "");
  const auto count = [&](const ListOptions& options) {
    const auto selected = client().List(kConfigMaps, ns(), options);
    return selected ? selected->items.size() : 0;
  };
  EXPECT_EQ(count({.label_selector = "parity=odd"}), 3u);
  EXPECT_EQ(count({.field_selector = "metadata.name=c4"}), 1u);
}

TEST_F(KubeClientTest, StatusAndScaleAreTheirOwnDoors) {
  Install(WidgetDefinition());
  const auto made = client().Create(
      kWidgets, {{"metadata", Meta("w")}, {"spec", {{"size", 2}}}, {"status", {{"size", 9}}}});
  ASSERT_TRUE(made) << made.error();
  EXPECT_FALSE(made->contains("status")) << "create ignores the status";

  json object = *made;
  object["status"] = {{"size", 1}};
  object["spec"]["size"] = 7;
  const auto with_status = client().Update(kWidgets, object, {.subresource = "status"});
  ASSERT_TRUE(with_status) << with_status.error();
  EXPECT_EQ((*with_status)["status"]["size"], 1);
  EXPECT_EQ((*with_status)["spec"]["size"], 2) << "the status subresource changes nothing else";
  EXPECT_EQ(client().Update(kWidgets, object, {.subresource = "status"}).error().code,
            ErrorCode::kConflict);

  const auto scale = client().Get(kWidgets, Key("w"), "scale");
  ASSERT_TRUE(scale) << scale.error();
  EXPECT_EQ((*scale)["spec"]["replicas"], 2);
  EXPECT_EQ((*scale)["status"]["replicas"], 1);
  ASSERT_TRUE(
      client().Patch(kWidgets, Key("w"), {{"spec", {{"replicas", 5}}}}, {.subresource = "scale"}));
  EXPECT_EQ((*client().Get(kWidgets, Key("w")))["spec"]["size"], 5);

  const auto refused = client().Patch(kWidgets, Key("w"), {{"spec", {{"size", 99}}}});
  EXPECT_EQ(refused.error().code, ErrorCode::kInvalid);
  EXPECT_THAT(refused.error().message, HasSubstr("spec.size"));
}

TEST_F(KubeClientTest, DependentsGoWithTheirOwner) {
  const auto owner = client().Create(kConfigMaps, ConfigMap("owner"));
  ASSERT_TRUE(owner) << owner.error();
  json dependent = ConfigMap("dependent");
  dependent["metadata"]["ownerReferences"] = json::array({{{"apiVersion", "v1"},
                                                           {"kind", "ConfigMap"},
                                                           {"name", "owner"},
                                                           {"uid", MetaOf(*owner).uid},
                                                           {"controller", true},
                                                           {"blockOwnerDeletion", true}}});
  ASSERT_TRUE(client().Create(kConfigMaps, dependent));
  json orphan = dependent;
  orphan["metadata"]["name"] = "of-a-dead-owner";
  orphan["metadata"]["ownerReferences"][0]["uid"] = "00000000-0000-0000-0000-000000000000";
  ASSERT_TRUE(client().Create(kConfigMaps, orphan));
  const auto gone = [&](const std::string& name) {
    const auto found = client().Get(kConfigMaps, Key(name));
    return !found && found.error().code == ErrorCode::kNotFound;
  };
  EXPECT_TRUE(WaitUntil([&] { return gone("of-a-dead-owner"); }))
      << "the owner's uid must match, too";
  EXPECT_FALSE(gone("dependent"));
  ASSERT_TRUE(client().Delete(kConfigMaps, Key("owner"), {.foreground = true}));
  EXPECT_TRUE(WaitUntil([&] { return gone("dependent") && gone("owner"); }));
}

}  // namespace
}  // namespace pliant::kube
