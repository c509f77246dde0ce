#include "operator/kube/object.h"

#include <nlohmann/json.hpp>

#include <gtest/gtest.h>

namespace pliant::kube {
namespace {

constexpr ResourceType kTrainingJobs{"example.dev", "v1alpha1", "trainingjobs", "TrainingJob"};

TEST(Object, PathsAreThoseOfTheApiServer) {
  EXPECT_EQ(CollectionPath(kPods, ""), "/api/v1/pods");
  EXPECT_EQ(CollectionPath(kPods, "team-a"), "/api/v1/namespaces/team-a/pods");
  EXPECT_EQ(ObjectPath(kNodes, {"", "n1"}), "/api/v1/nodes/n1");
  EXPECT_EQ(ObjectPath(kNodes, {"ignored", "n1"}), "/api/v1/nodes/n1");
  EXPECT_EQ(ObjectPath(kTrainingJobs, {"a", "b"}, "status"),
            "/apis/example.dev/v1alpha1/namespaces/a/trainingjobs/b/status");
  EXPECT_EQ(ApiVersion(kPods), "v1");
  EXPECT_EQ(ApiVersion(kTrainingJobs), "example.dev/v1alpha1");
}

TEST(Object, EscapesUrls) {
  EXPECT_EQ(QueryEscape("app=x,tier in (a, b)"), "app%3Dx%2Ctier%20in%20%28a%2C%20b%29");
  EXPECT_EQ(QueryEscape("\xC3\xA4-._~9"), "%C3%A4-._~9");
  EXPECT_EQ(ObjectPath(kPods, {"a", "../x?y"}), "/api/v1/namespaces/a/pods/..%2Fx%3Fy");
}

TEST(Object, MetadataOfWhatIsNoObjectIsEmpty) {
  const auto object = nlohmann::json::parse(
      R"({"metadata": {"namespace": "a", "name": "b", "uid": "u", "resourceVersion": "7"}})");
  EXPECT_EQ(MetaOf(object), (ObjectMeta{.key = {"a", "b"}, .uid = "u", .resource_version = "7"}));
  for (const char* text : {"[]", "{}", "1", "{\"metadata\": 3}", "{\"metadata\": {\"name\": 1}}"}) {
    EXPECT_EQ(MetaOf(nlohmann::json::parse(text)), ObjectMeta()) << text;
  }
}

}  // namespace
}  // namespace pliant::kube
