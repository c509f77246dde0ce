#include "operator/kube/kube_error.h"

#include <gtest/gtest.h>

namespace pliant::kube {
namespace {
using namespace std::chrono_literals;

struct ErrorCase {
  std::string name;
  HttpResponse response;
  ErrorCode want;
  std::string sentence;
  std::optional<Duration> retry_after = std::nullopt;
};

const ErrorCase kErrorCases[] = {
    {.name = "not found",
     .response = {.status = 404, .body = R"({"kind": "Status", "status": "Failure", "code": 404,
                              "reason": "NotFound", "message": "pods \"x\" not found"})"},
     .want = ErrorCode::kNotFound,
     .sentence = "pods \"x\" not found"},
    {.name = "409 of a name that is taken",
     .response = {.status = 409,
                  .body = R"({"status": "Failure", "code": 409, "reason": "AlreadyExists",
                              "message": "pods \"x\" already exists"})"},
     .want = ErrorCode::kAlreadyExists,
     .sentence = "pods \"x\" already exists"},
    {.name = "409 of a resource version that has passed",
     .response = {.status = 409, .body = R"({"status": "Failure", "code": 409, "reason": "Conflict",
                              "message": "the object has been modified"})"},
     .want = ErrorCode::kConflict,
     .sentence = "the object has been modified"},
    {.name = "an invalid object: its fields are named once",
     .response = {.status = 422, .body = R"({"status": "Failure", "code": 422, "reason": "Invalid",
                              "message": "job is invalid: spec.a: too small",
                              "details": {"causes": [
                                {"field": "spec.a", "message": "too small"},
                                {"field": "spec.b", "message": "too large"},
                                {"message": "nameless"}, 7]}})"},
     .want = ErrorCode::kInvalid,
     .sentence = "job is invalid: spec.a: too small (spec.b: too large)"},
    {.name = "too many requests, the wait in the header",
     .response = {.status = 429, .headers = {{"retry-after", "3"}}, .body = "slow down"},
     .want = ErrorCode::kThrottled,
     .sentence = "HTTP 429: slow down",
     .retry_after = 3s},
    {.name = "the wait in the details",
     .response = {.status = 503,
                  .body = R"({"status": "Failure", "code": 503, "message": "starting",
                              "details": {"retryAfterSeconds": 2}})"},
     .want = ErrorCode::kUnavailable,
     .sentence = "starting",
     .retry_after = 2s},
    {.name = "a wait that is a date counts as none",
     .response = {.status = 429, .headers = {{"Retry-After", "Fri, 20 Nov 2026 00:00:00 GMT"}}},
     .want = ErrorCode::kThrottled,
     .sentence = "HTTP 429"},
    {.name = "a wait that no clock holds counts as none",
     .response = {.status = 503, .body = R"({"status": "Failure", "code": 503, "message": "m",
                              "details": {"retryAfterSeconds": 99999999999999}})"},
     .want = ErrorCode::kUnavailable,
     .sentence = "m"},
    {.name = "the list is too old",
     .response = {.status = 410, .body = R"({"status": "Failure", "code": 410, "reason": "Expired",
                              "message": "The resourceVersion is too old"})"},
     .want = ErrorCode::kGone,
     .sentence = "The resourceVersion is too old"},
    {.name = "may have been done",
     .response = {.status = 500, .body = R"({"status": "Failure", "code": 500, "reason": "Timeout",
                              "message": "request did not complete"})"},
     .want = ErrorCode::kTimeout,
     .sentence = "request did not complete"},
    {.name = "unauthorized",
     .response = {.status = 401,
                  .body = R"({"status": "Failure", "code": 401, "reason": "Unauthorized"})"},
     .want = ErrorCode::kDenied,
     .sentence = "Unauthorized"},
    {.name = "a proxy's page",
     .response = {.status = 502, .body = "<html>bad gateway</html>"},
     .want = ErrorCode::kUnavailable,
     .sentence = "HTTP 502: <html>bad gateway</html>"},
    {.name = "a page of another encoding",
     .response = {.status = 502, .body = "d\xE9sol\xE9"},
     .want = ErrorCode::kUnavailable,
     .sentence = "HTTP 502: d\uFFFDsol\uFFFD"},
    {.name = "a redirect is not followed and no answer",
     .response = {.status = 302},
     .want = ErrorCode::kInternal,
     .sentence = "HTTP 302"},
    {.name = "JSON, but no Status",
     .response = {.status = 404, .body = "[1]"},
     .want = ErrorCode::kNotFound,
     .sentence = "HTTP 404: [1]"},
};

TEST(KubeError, FollowsFromTheAnswer) {
  for (const ErrorCase& test : kErrorCases) {
    SCOPED_TRACE(test.name);
    const KubeError error = ErrorFromResponse(test.response);
    EXPECT_EQ(error.code, test.want);
    EXPECT_EQ(error.message, test.sentence);
    EXPECT_EQ(error.retry_after, test.retry_after);
    EXPECT_EQ(error.http_status, test.response.status);
  }
}

TEST(KubeError, OnlyWhatTheServerWillNotHaveIsARefusal) {
  for (const auto& [status, want] : {std::pair{400, true},
                                     {401, false},
                                     {403, true},
                                     {404, false},
                                     {422, true},
                                     {429, false},
                                     {500, false},
                                     {504, false}}) {
    EXPECT_EQ(IsRefusal(ErrorFromResponse({.status = status})), want) << status;
  }
  EXPECT_FALSE(IsRefusal(KubeError(ErrorCode::kDenied, "token: permission denied")));
}

TEST(KubeError, ReadsTheStatusObjectOfAWatch) {
  const KubeError error =
      ErrorFromStatus(R"({"kind": "Status", "code": 410, "reason": "Gone", "message": "too old"})");
  EXPECT_EQ(error.code, ErrorCode::kGone);
  EXPECT_EQ(error.http_status, 410);
  EXPECT_EQ(ErrorFromStatus("nonsense").code, ErrorCode::kInternal);
}

Result<int> PassesOn() {
  const KubeResult<int> called = std::unexpected(KubeError(ErrorCode::kGone, "too old"));
  ASSIGN_OR_RETURN(const int value, called);
  return value;
}

TEST(KubeError, ConvertsToError) {
  EXPECT_EQ(PassesOn().error(), (Error{ErrorCode::kGone, "too old"}));
}

}  // namespace
}  // namespace pliant::kube
