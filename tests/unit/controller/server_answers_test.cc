#include "operator/controller/actions/server_answers.h"

#include <gtest/gtest.h>

namespace pliant::controller {
namespace {

kube::KubeError ErrorOf(ErrorCode code, int status, std::string message = "no") {
  kube::KubeError error(code, std::move(message));
  error.http_status = status;
  return error;
}

TEST(ServerAnswers, AQuotaLacksGpusIfThatIsAllThatItNames) {
  const struct {
    const char* name;
    int status;
    const char* message;
    bool lacks;
  } kCases[] = {
      {"GPUs", 403,
       "pods \"a\" is forbidden: exceeded quota: gpus, requested: requests.nvidia.com/gpu=1, "
       "used: requests.nvidia.com/gpu=8, limited: requests.nvidia.com/gpu=8",
       true},
      {"GPUs and pods", 403,
       "exceeded quota: gpus, requested: requests.nvidia.com/gpu=1,pods=1, used: pods=3", false},
      {"pods", 403, "exceeded quota: pods, requested: pods=1, used: pods=3, limited: pods=3",
       false},
      {"another GPU", 403, "exceeded quota: q, requested: requests.amd.com/gpu=1, used: x", false},
      {"the same message with another status", 400,
       "exceeded quota: gpus, requested: requests.nvidia.com/gpu=1, used: x", false},
      {"it breaks off", 403, "exceeded quota: gpus, requested: requests.nvidia.com/gpu=1", false},
  };
  for (const auto& c : kCases) {
    EXPECT_EQ(LacksGpusOfQuota(ErrorOf(ErrorCode::kDenied, c.status, c.message), "nvidia.com/gpu"),
              c.lacks)
        << c.name;
  }
}

TEST(ServerAnswers, ClassifiesErrors) {
  const struct {
    const char* name;
    kube::KubeError error;
    bool refuses_pod;
    bool leaves_unknown;
    bool tells_nothing;
    bool gone;
    std::string unanswered;
  } kCases[] = {
      {"invalid", ErrorOf(ErrorCode::kInvalid, 422), true, false, true, false, ""},
      {"an object that is not understood", ErrorOf(ErrorCode::kInvalid, 0), false, false, false,
       false, ""},
      {"forbidden", ErrorOf(ErrorCode::kDenied, 403), true, false, true, false, ""},
      {"the operator is not authenticated", ErrorOf(ErrorCode::kDenied, 401), false, false, true,
       false, ""},
      {"no namespace", ErrorOf(ErrorCode::kNotFound, 404), true, false, false, true, ""},
      {"conflict", ErrorOf(ErrorCode::kConflict, 409), true, false, true, true, ""},
      {"a conflict that was found here", ErrorOf(ErrorCode::kConflict, 0), false, false, true, true,
       ""},
      {"throttled", ErrorOf(ErrorCode::kThrottled, 429), false, false, true, false, ""},
      {"a webhook failed", ErrorOf(ErrorCode::kUnavailable, 500, "failed calling webhook"), false,
       true, true, false, "failed calling webhook"},
      {"unwell", ErrorOf(ErrorCode::kUnavailable, 503), false, true, true, false, ""},
      {"no connection", ErrorOf(ErrorCode::kUnavailable, 0), false, true, true, false, ""},
      {"an answer that is not understood", ErrorOf(ErrorCode::kInternal, 0), false, true, true,
       false, ""},
      {"no answer in time", ErrorOf(ErrorCode::kTimeout, 0, "12 s"), false, true, true, false,
       "the API server did not create pod a in time, perhaps because an admission webhook does not "
       "answer: 12 s"},
      {"this process may not write", ErrorOf(ErrorCode::kCancelled, 0), false, false, false, false,
       ""},
  };
  for (const auto& c : kCases) {
    EXPECT_EQ(RefusesPod(c.error), c.refuses_pod) << c.name;
    EXPECT_EQ(LeavesUnknown(c.error), c.leaves_unknown) << c.name;
    EXPECT_EQ(ReportsNothing(c.error), c.tells_nothing) << c.name;
    EXPECT_EQ(IsGone(c.error), c.gone) << c.name;
    EXPECT_EQ(WhyUnanswered("create pod a", c.error), c.unanswered) << c.name;
  }
}

}  // namespace
}  // namespace pliant::controller
