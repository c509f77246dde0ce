#include "operator/controller/actions/retry_state.h"

#include <chrono>
#include <vector>

#include <gtest/gtest.h>

#include "tests/unit/controller/job_fixture.h"

namespace pliant::controller {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using enum NextStep::Kind;

BatchResult FailedWith(ErrorCode code, std::optional<Duration> retry_after = {}) {
  kube::KubeError error(code, "no");
  if (code == ErrorCode::kDenied) error.http_status = 403;
  error.retry_after = retry_after;
  return {.error = error, .failed = 0};
}

BatchResult Unknown() {
  BatchResult result = FailedWith(ErrorCode::kUnavailable);
  result.outcome_unknown = true;
  return result;
}

TEST(RetryState, EachResultOfABatchHasItsNextStep) {
  const struct {
    const char* name;
    BatchResult result;
    bool unanswered_before;
    NextStep want;
    bool rests;
  } kCases[] = {
      {"all was done", {}, false, {.kind = kLookAgain}, false},
      {"an old version",
       FailedWith(ErrorCode::kConflict),
       false,
       {.kind = kLookLater, .delay = milliseconds(200)},
       false},
      {"the object is deleted",
       FailedWith(ErrorCode::kNotFound),
       false,
       {.kind = kLookLater, .delay = milliseconds(200)},
       false},
      {"the lease is lost", FailedWith(ErrorCode::kCancelled), false, {.kind = kNothing}, false},
      {"no connection",
       FailedWith(ErrorCode::kUnavailable),
       false,
       {.kind = kRest, .delay = seconds(1), .log_error = true},
       true},
      {"refused",
       FailedWith(ErrorCode::kDenied),
       false,
       {.kind = kRest, .delay = seconds(5), .log_error = true},
       true},
      {"the server requests a longer delay",
       FailedWith(ErrorCode::kThrottled, seconds(7)),
       false,
       {.kind = kRest, .delay = seconds(7), .log_error = true},
       true},
      {"the server requests too long a delay",
       FailedWith(ErrorCode::kThrottled, std::chrono::hours(5)),
       false,
       {.kind = kRest, .delay = seconds(300), .log_error = true},
       true},
      {"the outcome is unknown",
       Unknown(),
       false,
       {.kind = kResolve, .delay = seconds(1), .log_error = true},
       false},
      {"it was not done after all", {}, true, {.kind = kRest, .delay = seconds(1)}, true},
  };
  for (const auto& c : kCases) {
    RetryState retry(milliseconds(200));
    EXPECT_EQ(StepAfter(c.result, c.unanswered_before, At(100), retry), c.want) << c.name;
    EXPECT_EQ(retry.not_before,
              c.rests ? At(100) + std::chrono::ceil<milliseconds>(c.want.delay) : WallTime{})
        << c.name;
  }
}

TEST(RetryState, FailuresInARowLastLongerUpToAMinuteAndRefusalsToFive) {
  const struct {
    ErrorCode code;
    std::vector<int> seconds;
  } kCases[] = {{ErrorCode::kUnavailable, {1, 2, 4, 8, 16, 32, 60, 60}},
                {ErrorCode::kDenied, {5, 10, 20, 40, 80, 160, 300, 300}}};
  for (const auto& c : kCases) {
    RetryState retry(milliseconds(200));
    for (const int wait : c.seconds) {
      EXPECT_EQ(StepAfter(FailedWith(c.code), false, At(0), retry).delay, seconds(wait));
    }
    StepAfter({}, false, At(0), retry);
    EXPECT_EQ(retry.not_before, WallTime{});
    const NextStep next = StepAfter(FailedWith(c.code), false, At(0), retry);
    EXPECT_EQ(next.delay, seconds(c.seconds[0])) << "after a success";
    EXPECT_TRUE(next.log_error) << "after a success";
  }
}

TEST(RetryState, ARefusalAmidFailuresDoesNotResetTheBackoff) {
  RetryState retry(milliseconds(200));
  for (int i = 0; i < 5; ++i) StepAfter(FailedWith(ErrorCode::kUnavailable), false, At(0), retry);
  EXPECT_EQ(StepAfter(FailedWith(ErrorCode::kDenied), false, At(0), retry).delay, seconds(32));
}

TEST(RetryState, ConflictsInARowLastLonger) {
  RetryState retry(milliseconds(200));
  for (const int wait : {200, 400, 800}) {
    EXPECT_EQ(StepAfter(FailedWith(ErrorCode::kConflict), false, At(0), retry).delay,
              milliseconds(wait));
  }
}

TEST(RetryState, AnErrorIsLoggedOnceInARow) {
  RetryState retry(milliseconds(200));
  EXPECT_TRUE(StepAfter(Unknown(), false, At(0), retry).log_error);
  EXPECT_FALSE(StepAfter(Unknown(), false, At(1), retry).log_error);
  BatchResult other = FailedWith(ErrorCode::kUnavailable);
  other.error->message = "another";
  EXPECT_TRUE(StepAfter(other, false, At(2), retry).log_error);
}

}  // namespace
}  // namespace pliant::controller
