#include "operator/web/access_review.h"

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "tests/kube/scripted_transport.h"

namespace pliant::web {
namespace {

using kube::HttpMethod;
using kube::ScriptedTransport;
using nlohmann::json;

constexpr const char* kTokenReviewPath = "/apis/authentication.k8s.io/v1/tokenreviews";
constexpr const char* kAccessReviewPath = "/apis/authorization.k8s.io/v1/subjectaccessreviews";
constexpr const char* kPrometheus = R"({"status": {"authenticated": true, "user": {
    "username": "system:serviceaccount:monitoring:prometheus", "uid": "7",
    "groups": ["system:authenticated"],
    "extra": {"authentication.kubernetes.io/pod-name": ["p-0"]}}}})";

TEST(BearerToken, IsWhatMayStandInItsHeader) {
  for (const char* token : {"a", "eyJhbGciOi.eyJpc3MiOiJ-_.c2ln", "a+b/c=="}) {
    EXPECT_TRUE(IsBearerToken(token)) << token;
  }
  EXPECT_TRUE(IsBearerToken(std::string(8192, 'a')));
  EXPECT_FALSE(IsBearerToken(std::string(8193, 'a')));
  for (const char* token : {"", "a b", "a\n", "\xff", "{\"a\"}", "ä"}) {
    EXPECT_FALSE(IsBearerToken(token)) << token;
  }
}

class ReviewAccessTest : public testing::Test {
 protected:
  static kube::HttpResponse Created(const std::string& body) {
    return {.status = 201, .headers = {}, .body = body};
  }

  ScriptedTransport server_;
  kube::KubeClient client_{
      server_, kube::Config{.server = "https://a", .token = "own"}, {.max_answer_bytes = 1 << 20}};
};

TEST_F(ReviewAccessTest, AsksWhoItIsAndThenWhatTheyMayDo) {
  server_.Answer(HttpMethod::kPost, kTokenReviewPath, Created(kPrometheus));
  server_.Answer(HttpMethod::kPost, kAccessReviewPath, Created(R"({"status": {"allowed": true}})"));
  const auto access = ReviewAccess(client_, "theirs", "/metrics");
  ASSERT_TRUE(access) << access.error();
  EXPECT_EQ(*access, Access::kGranted);
  const auto requests = server_.requests();
  ASSERT_EQ(requests.size(), 2u);
  EXPECT_EQ(json::parse(requests[0].body),
            json::parse(R"({"apiVersion": "authentication.k8s.io/v1", "kind": "TokenReview",
                            "spec": {"token": "theirs"}})"));
  EXPECT_EQ(requests[0].headers.at("Authorization"), "Bearer own");
  EXPECT_EQ(json::parse(requests[1].body), json::parse(R"({
      "apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview",
      "spec": {"user": "system:serviceaccount:monitoring:prometheus", "uid": "7",
               "groups": ["system:authenticated"],
               "extra": {"authentication.kubernetes.io/pod-name": ["p-0"]},
               "nonResourceAttributes": {"path": "/metrics", "verb": "get"}}})"));
  for (const auto& request : requests) EXPECT_EQ(request.max_body_bytes, 1u << 20);
}

TEST_F(ReviewAccessTest, LetsNobodyInByMistake) {
  struct Case {
    std::string name;
    std::string token_review;
    std::string access_review;   // "": is not requested
    std::optional<Access> want;  // nullopt: not decided
  };
  const std::string allowed = R"({"status": {"allowed": true}})";
  const Case kCases[] = {
      {"an expired token", R"({"status": {"authenticated": false, "error": "token has expired"}})",
       "", Access::kUnknown},
      {"an invalid token", R"({"status": {}})", "", Access::kUnknown},
      {"authenticated as text", R"({"status": {"authenticated": "true", "user": {}}})", "",
       Access::kUnknown},
      {"no status", R"({"kind": "TokenReview"})", "", std::nullopt},
      {"a status that is none", R"({"status": []})", "", std::nullopt},
      {"a user without a name", R"({"status": {"authenticated": true, "user": {"uid": "1"}}})", "",
       std::nullopt},
      {"no user", R"({"status": {"authenticated": true}})", "", std::nullopt},
      {"not allowed", kPrometheus, R"({"status": {"allowed": false, "reason": "no RBAC"}})",
       Access::kForbidden},
      {"not said", kPrometheus, R"({"status": {}})", Access::kForbidden},
      {"allowed and denied", kPrometheus, R"({"status": {"allowed": true, "denied": true}})",
       Access::kForbidden},
      {"allowed as text", kPrometheus, R"({"status": {"allowed": "true"}})", Access::kForbidden},
      {"an error together with a refusal", kPrometheus,
       R"({"status": {"allowed": false, "evaluationError": "webhook"}})", Access::kForbidden},
      {"no decision", kPrometheus, R"({"spec": {}})", std::nullopt},
  };
  for (const Case& c : kCases) {
    SCOPED_TRACE(c.name);
    server_.Answer(HttpMethod::kPost, kTokenReviewPath, Created(c.token_review));
    if (!c.access_review.empty()) {
      server_.Answer(HttpMethod::kPost, kAccessReviewPath, Created(c.access_review));
    }
    const auto access = ReviewAccess(client_, "theirs", "/metrics");
    EXPECT_EQ(access ? std::optional(*access) : std::nullopt, c.want);
    EXPECT_TRUE(server_.done());
  }
}

TEST_F(ReviewAccessTest, AServerThatDoesNotAnswerDecidesNothing) {
  const Result<kube::HttpResponse> kAnswers[] = {
      Fail(ErrorCode::kTimeout, "no answer in 4 s"),
      Fail(ErrorCode::kInvalid, "the answer is longer than 1048576 bytes"),
      Fail(ErrorCode::kUnavailable, "connection refused"),
      kube::HttpResponse{.status = 403, .headers = {}, .body = "may not create tokenreviews"},
      kube::HttpResponse{.status = 500, .headers = {}, .body = "{}"},
      kube::HttpResponse{.status = 201, .headers = {}, .body = "<html>"},
  };
  for (const auto& answer : kAnswers) {
    server_.Answer(HttpMethod::kPost, kTokenReviewPath, answer);
    EXPECT_FALSE(ReviewAccess(client_, "theirs", "/metrics"));
    server_.Answer(HttpMethod::kPost, kTokenReviewPath, Created(kPrometheus));
    server_.Answer(HttpMethod::kPost, kAccessReviewPath, answer);
    EXPECT_FALSE(ReviewAccess(client_, "theirs", "/metrics"));
  }
  EXPECT_TRUE(server_.done());
}

}  // namespace
}  // namespace pliant::web
