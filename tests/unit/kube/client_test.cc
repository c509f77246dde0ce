#include "operator/kube/client.h"

#include <nlohmann/json.hpp>
#include <thread>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/kube/scripted_transport.h"
#include "tests/unit/kube/temp_folder.h"

namespace pliant::kube {
namespace {
using namespace std::chrono_literals;

using nlohmann::json;
using testing::ElementsAre;
using testing::HasSubstr;

const NamespacedName kKey{"team-a", "p"};

HttpResponse Ok(const json& body) { return {.status = 200, .headers = {}, .body = body.dump()}; }

json SomePod() { return {{"metadata", {{"namespace", "team-a"}, {"name", "p"}}}}; }

class ClientTest : public testing::Test {
 protected:
  const HttpRequest& LastRequest() {
    requests_ = transport_.requests();
    return requests_.back();
  }
  json LastBody() { return json::parse(LastRequest().body); }

  ScriptedTransport transport_;
  KubeClient client_{transport_, Config{.server = "https://a", .token = "secret"}};

 private:
  std::vector<HttpRequest> requests_;
};

TEST_F(ClientTest, GetsAnObjectOrASubresource) {
  transport_.Answer(HttpMethod::kGet, "/api/v1/namespaces/team-a/pods/p", Ok(SomePod()));
  EXPECT_EQ(*client_.Get(kPods, kKey), SomePod());
  EXPECT_EQ(LastRequest().target, "/api/v1/namespaces/team-a/pods/p");
  EXPECT_EQ(LastRequest().headers.at("authorization"), "Bearer secret");
  EXPECT_EQ(LastRequest().headers.at("User-Agent"), "pliant-operator");
  transport_.Answer(HttpMethod::kGet, "/", Ok(SomePod()));
  ASSERT_TRUE(client_.Get(kPods, kKey, "status"));
  EXPECT_EQ(LastRequest().target, "/api/v1/namespaces/team-a/pods/p/status");
}

TEST_F(ClientTest, AnAnswerThatIsNoObjectIsAnError) {
  for (const char* body : {"", "[]", "<html>", "{"}) {
    transport_.Answer(HttpMethod::kGet, "/",
                      HttpResponse{.status = 200, .headers = {}, .body = body});
    EXPECT_EQ(client_.Get(kPods, kKey).error().code, ErrorCode::kInternal) << body;
  }
}

TEST_F(ClientTest, WritesNameTheirFieldManagerAndCarryTheType) {
  transport_.Answer(HttpMethod::kPost, "/", Ok(SomePod()));
  ASSERT_TRUE(client_.Create(kPods, SomePod(), {.dry_run = true}));
  EXPECT_EQ(LastRequest().target,
            "/api/v1/namespaces/team-a/pods?fieldManager=pliant-operator&dryRun=All");
  EXPECT_EQ(LastRequest().headers.at("Content-Type"), "application/json");
  EXPECT_EQ(LastBody()["kind"], "Pod");
  EXPECT_EQ(LastBody()["apiVersion"], "v1");

  transport_.Answer(HttpMethod::kPut, "/", Ok(SomePod()));
  ASSERT_TRUE(client_.Update(kPods, SomePod(), {.subresource = "status"}));
  EXPECT_EQ(LastRequest().target,
            "/api/v1/namespaces/team-a/pods/p/status?fieldManager=pliant-operator");
  EXPECT_LE(LastRequest().deadline, Duration(4s)) << "a write may not outlive the lease";
  EXPECT_GT(LastRequest().deadline, Duration(0s));

  transport_.Answer(HttpMethod::kPost, "/", Ok(SomePod()));
  ASSERT_TRUE(client_.Create(kPods, SomePod(), {.deadline = 12s}));
  EXPECT_LE(LastRequest().deadline, Duration(12s));
  EXPECT_GT(LastRequest().deadline, Duration(10s)) << "except where a late write does no harm";
}

TEST_F(ClientTest, PatchesAreMerged) {
  transport_.Answer(HttpMethod::kPatch, "/", Ok(SomePod()));
  ASSERT_TRUE(client_.Patch(kPods, kKey, json::object()));
  EXPECT_EQ(LastRequest().headers.at("Content-Type"), "application/merge-patch+json");
  EXPECT_TRUE(LastRequest().target.ends_with("=pliant-operator")) << LastRequest().target;
}

TEST_F(ClientTest, DeletesUnderPreconditions) {
  transport_.Answer(HttpMethod::kDelete, "/", Ok(SomePod()));
  ASSERT_TRUE(
      client_.Delete(kPods, kKey, {.uid = "u", .resource_version = "7", .grace_period = 1500ms}));
  EXPECT_EQ(LastBody()["preconditions"], (json{{"uid", "u"}, {"resourceVersion", "7"}}));
  EXPECT_EQ(LastBody()["gracePeriodSeconds"], 2) << "never shorter than requested";
  EXPECT_EQ(LastBody()["propagationPolicy"], "Background");

  transport_.Answer(HttpMethod::kDelete, "/", Ok(SomePod()));
  ASSERT_TRUE(client_.Delete(kPods, kKey, {.grace_period = 0s, .foreground = true}));
  EXPECT_EQ(LastBody()["gracePeriodSeconds"], 0);
  EXPECT_FALSE(LastBody().contains("preconditions"));
  EXPECT_EQ(LastBody()["propagationPolicy"], "Foreground");
}

TEST_F(ClientTest, BadTextIsSentForTheServerToRefuse) {
  transport_.Answer(HttpMethod::kPost, "/", HttpResponse{.status = 422});
  json pod = SomePod();
  pod["metadata"]["labels"] = {{"a", "\xFF"}};
  EXPECT_EQ(client_.Create(kPods, pod).error().code, ErrorCode::kInvalid);
}

json List(std::vector<std::string> names, const std::string& next) {
  json items = json::array();
  for (const std::string& name : names) items.push_back({{"metadata", {{"name", name}}}});
  return {{"items", items}, {"metadata", {{"resourceVersion", "9"}, {"continue", next}}}};
}

std::vector<std::string> Names(const ListPage& page) {
  std::vector<std::string> names;
  for (const json& item : page.items) names.push_back(MetaOf(item).key.name);
  return names;
}

TEST_F(ClientTest, ListsPageByPage) {
  transport_.Answer(HttpMethod::kGet, "/api/v1/pods?labelSelector=a%3Db&limit=2",
                    Ok(List({"1", "2"}, "next")));
  transport_.Answer(HttpMethod::kGet, "/api/v1/pods?labelSelector=a%3Db&limit=2&continue=next",
                    Ok(List({"3"}, "")));
  ListOptions options{.label_selector = "a=b", .limit = 2};
  const auto first = client_.List(kPods, "", options);
  ASSERT_TRUE(first);
  EXPECT_THAT(Names(*first), ElementsAre("1", "2"));
  EXPECT_EQ(first->resource_version, "9");
  options.continue_token = first->continue_token;
  const auto last = client_.List(kPods, "", options);
  ASSERT_TRUE(last);
  EXPECT_THAT(Names(*last), ElementsAre("3"));
  EXPECT_EQ(last->continue_token, "");
}

TEST_F(ClientTest, AnAnswerThatIsNoListIsAnErrorAndNoEmptyList) {
  for (const json& body : {json::object(), json{{"items", nullptr}}, json{{"metadata", 1}}}) {
    transport_.Answer(HttpMethod::kGet, "/", Ok(body));
    EXPECT_EQ(client_.List(kPods, "").error().code, ErrorCode::kInternal) << body;
  }
}

TEST_F(ClientTest, WatchesUntilTheServerEndsIt) {
  transport_.AnswerStream(
      "/api/v1/namespaces/team-a/pods?watch=1&allowWatchBookmarks=true&timeoutSeconds=300"
      "&resourceVersion=9&fieldSelector=status.phase%21%3DFailed",
      {R"({"type": "ADDED", "object": {"metadata": {"name": "1"}}})", "",
       R"({"type": "INVENTED", "object": {"metadata": {"name": "2"}}})",
       R"({"type": "DELETED", "object": {"metadata": {"name": "3"}}})",
       R"({"type": "BOOKMARK", "object": {"metadata": {"resourceVersion": "12"}}})"},
      ScriptedTransport::StreamEnd::kOrderly);
  std::vector<std::pair<WatchEventType, ObjectMeta>> seen;
  const auto watched = client_.Watch(
      kPods, "team-a", {.field_selector = "status.phase!=Failed", .resource_version = "9"},
      [&](WatchEventType type, json& object) {
        seen.emplace_back(type, MetaOf(object));
        return true;
      });
  EXPECT_TRUE(watched);
  EXPECT_THAT(seen, ElementsAre(std::pair(WatchEventType::kAdded, ObjectMeta{.key = {"", "1"}}),
                                std::pair(WatchEventType::kDeleted, ObjectMeta{.key = {"", "3"}}),
                                std::pair(WatchEventType::kBookmark,
                                          ObjectMeta{.resource_version = "12"})));
}

TEST_F(ClientTest, AWatchEndsWithTheErrorThatTheServerTells) {
  const auto watch = [&](std::string line) {
    transport_.AnswerStream("/api/v1/pods", {std::move(line)},
                            ScriptedTransport::StreamEnd::kOrderly);
    return client_.Watch(kPods, "", {}, [](WatchEventType, json&) { return true; });
  };
  EXPECT_EQ(
      watch(R"({"type": "ERROR", "object": {"code": 410, "reason": "Expired"}})").error().code,
      ErrorCode::kGone);
  EXPECT_EQ(watch("{\"type\": \"ADD").error().code, ErrorCode::kInternal);
  EXPECT_EQ(watch("{\"type\": \"ADDED\", \"object\": 1}").error().code, ErrorCode::kInternal);
  transport_.RefuseStream("/api/v1/pods", HttpResponse{.status = 403});
  EXPECT_EQ(client_.Watch(kPods, "", {}, [](WatchEventType, json&) { return true; }).error().code,
            ErrorCode::kDenied);
}

TEST(Client, ReadsARefusedTokenAgainAndRetriesOnce) {
  TempFolder folder;
  const std::string file = folder.Write("token", "old");
  ScriptedTransport transport;
  std::vector<std::string> codes;
  KubeClient client(
      transport, Config{.server = "https://a", .token_file = file},
      {.on_request = [&](const RequestReport& report) {
        codes.push_back(std::string(ToString(report.method)) + " " + std::string(report.code));
      }});
  transport.AnswerRest([&](const HttpRequest& request) -> Result<HttpResponse> {
    if (request.headers.at("Authorization") == "Bearer new") return Ok(SomePod());
    folder.Write("token", "new");
    return HttpResponse{.status = 401};
  });
  EXPECT_TRUE(client.Get(kPods, kKey));
  EXPECT_THAT(codes, ElementsAre("GET 401", "GET 200"));

  transport.AnswerRest([](const HttpRequest&) { return HttpResponse{.status = 401}; });
  EXPECT_EQ(client.Get(kPods, kKey).error().code, ErrorCode::kDenied);
  EXPECT_THAT(codes, ElementsAre("GET 401", "GET 200", "GET 401")) << "the file has no newer token";
  transport.AnswerRest([](const HttpRequest&) { return Fail(ErrorCode::kUnavailable, "reset"); });
  EXPECT_EQ(client.Get(kPods, kKey).error().code, ErrorCode::kUnavailable);
  EXPECT_EQ(codes.back(), "GET <error>");
}

TEST(Client, NoWriteLeavesWithoutPermission) {
  ScriptedTransport transport;
  bool leads = false;
  KubeClient client(transport, Config{.server = "https://a"}, {.may_write = [&] { return leads; }});
  EXPECT_EQ(client.Create(kPods, SomePod()).error().code, ErrorCode::kCancelled);
  EXPECT_EQ(client.Update(kPods, SomePod()).error().code, ErrorCode::kCancelled);
  EXPECT_EQ(client.Patch(kPods, kKey, json::object()).error().code, ErrorCode::kCancelled);
  EXPECT_EQ(client.Delete(kPods, kKey).error().code, ErrorCode::kCancelled);
  EXPECT_TRUE(transport.requests().empty());
  transport.AnswerRest([](const HttpRequest&) { return Ok(SomePod()); });
  EXPECT_TRUE(client.Get(kPods, kKey)) << "reads are not limited";
  leads = true;
  EXPECT_TRUE(client.Create(kPods, SomePod()));
}

TEST(Client, WaitsForItsTurnAndCanBeStoppedMeanwhile) {
  ScriptedTransport transport;
  transport.AnswerRest([](const HttpRequest&) { return Ok(SomePod()); });
  KubeClient client(transport, Config{.server = "https://a"},
                    {.requests_per_second = 0.001, .burst = 1});
  EXPECT_TRUE(client.Get(kPods, kKey));
  std::stop_source stop;
  std::jthread stopper([&] {
    std::this_thread::sleep_for(5ms);
    stop.request_stop();
  });
  EXPECT_EQ(client.Get(kPods, kKey, "", stop.get_token()).error().code, ErrorCode::kCancelled);
  EXPECT_EQ(transport.requests().size(), 1u);
}

}  // namespace
}  // namespace pliant::kube
