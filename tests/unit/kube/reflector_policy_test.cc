#include "operator/kube/reflector_policy.h"

#include <optional>

#include <gtest/gtest.h>

#include "tests/unit/kube/start.h"

namespace pliant::kube {
namespace {
using namespace std::chrono_literals;
using ReflectorAction = ReflectorPolicy::Action;

const KubeError kReset(ErrorCode::kUnavailable, "connection reset");

KubeError Answered(ErrorCode code, int status) {
  KubeError error(code, "no");
  error.http_status = status;
  return error;
}

class ReflectorPolicyTest : public testing::Test {
 protected:
  ReflectorPolicy policy_{ReflectorTiming(), /*stream_lists=*/false};
};

TEST_F(ReflectorPolicyTest, ListsThenWatchesFromThere) {
  EXPECT_EQ(policy_.Start(), (ReflectorPolicy::Step{.action = ReflectorAction::kList}));
  const ReflectorPolicy::Step watch = policy_.AfterList("7", 0.5);
  EXPECT_EQ(watch.action, ReflectorAction::kWatch);
  EXPECT_EQ(watch.wait, Duration(0s));
  EXPECT_EQ(watch.resource_version, "7");
  EXPECT_EQ(watch.watch_timeout, Duration(450s)) << "half-way between 5 and 10 minutes";
  EXPECT_EQ(watch.restart_reason, "");
}

TEST_F(ReflectorPolicyTest, AWatchThatEndedContinuesAtItsPosition) {
  policy_.AfterList("7", 0);
  policy_.OnEvent("8");
  policy_.OnEvent("9");
  const ReflectorPolicy::Step watch = policy_.AfterWatch({}, kStart, kStart + 5min, 0);
  EXPECT_EQ(watch.action, ReflectorAction::kWatch);
  EXPECT_EQ(watch.wait, Duration(0s));
  EXPECT_EQ(watch.resource_version, "9");
  EXPECT_EQ(watch.restart_reason, "");
}

TEST_F(ReflectorPolicyTest, ANewListForgetsTheOldPosition) {
  policy_.AfterList("7", 0);
  policy_.OnEvent("8");
  EXPECT_EQ(policy_.AfterList("20", 0).resource_version, "20");
}

TEST_F(ReflectorPolicyTest, AWatchThatEndsAtOnceAndTellsNothingIsAnError) {
  policy_.AfterList("7", 0);
  Duration last{};
  for (int i = 0; i < 5; ++i) {
    const ReflectorPolicy::Step step = policy_.AfterWatch({}, kStart, kStart + 999ms, 0);
    EXPECT_EQ(step.action, ReflectorAction::kWatch);
    EXPECT_GT(step.wait, last) << "the delay grows";
    EXPECT_EQ(step.restart_reason, "TooShort");
    last = step.wait;
  }
  EXPECT_EQ(policy_.AfterWatch({}, kStart, kStart + 1s, 0).wait, Duration(0s));
  policy_.OnEvent("8");
  EXPECT_EQ(policy_.AfterWatch({}, kStart, kStart, 0).wait, Duration(0s))
      << "a short watch that delivered an event is no failure";
}

struct ReflectedError {
  std::string name;
  KubeError error;
  ReflectorAction next;
};

const ReflectedError kErrors[] = {
    {"the connection broke", kReset, ReflectorAction::kWatch},
    {"nothing came", KubeError(ErrorCode::kTimeout, "idle"), ReflectorAction::kWatch},
    {"the server is not ready", Answered(ErrorCode::kUnavailable, 503), ReflectorAction::kWatch},
    {"too many requests", Answered(ErrorCode::kThrottled, 429), ReflectorAction::kWatch},
    {"the position expired", Answered(ErrorCode::kGone, 410), ReflectorAction::kList},
    {"the position is from the future, after a restore", Answered(ErrorCode::kTimeout, 504),
     ReflectorAction::kList},
    {"the kind does not exist", Answered(ErrorCode::kNotFound, 404), ReflectorAction::kList},
    {"forbidden", Answered(ErrorCode::kDenied, 403), ReflectorAction::kList},
    {"a garbled line", KubeError(ErrorCode::kInternal, "no event"), ReflectorAction::kList},
    {"an endless line", KubeError(ErrorCode::kInvalid, "too long"), ReflectorAction::kList},
};

TEST_F(ReflectorPolicyTest, AnErrorDecidesWhetherToListAgain) {
  for (const ReflectedError& test : kErrors) {
    SCOPED_TRACE(test.name);
    ReflectorPolicy policy{ReflectorTiming(), /*stream_lists=*/false};
    policy.AfterList("7", 0);
    const ReflectorPolicy::Step step = policy.AfterWatch(test.error, kStart, kStart + 1min, 0);
    EXPECT_EQ(step.action, test.next);
    EXPECT_EQ(step.resource_version, test.next == ReflectorAction::kWatch ? "7" : "");
    EXPECT_EQ(step.restart_reason, ToString(test.error.code));
    // An expired position is retried at once; everything else waits 0.8 s.
    EXPECT_EQ(step.wait, test.error.code == ErrorCode::kGone ? Duration(0s) : Duration(800ms));
  }
}

TEST_F(ReflectorPolicyTest, AStormOfExpiriesIsSlowedDown) {
  policy_.AfterList("7", 0);
  const KubeError gone = Answered(ErrorCode::kGone, 410);
  EXPECT_EQ(policy_.AfterWatch(gone, kStart, kStart, 0).wait, Duration(0s));
  policy_.AfterList("8", 0);
  EXPECT_EQ(policy_.AfterWatch(gone, kStart, kStart + 1s, 0).wait, Duration(1600ms));
  policy_.AfterList("9", 0);
  EXPECT_EQ(policy_.AfterWatch(gone, kStart, kStart + 3s, 0).wait, Duration(3200ms));
}

TEST_F(ReflectorPolicyTest, DelaysGrowToTheirCapWithJitterAndResetAfterCalm) {
  Duration wait{};
  for (int i = 0; i < 10; ++i) wait = policy_.AfterListError(kReset, kStart, 0).wait;
  EXPECT_EQ(wait, Duration(30s));
  EXPECT_EQ(policy_.AfterListError(kReset, kStart, 0.5).wait, Duration(45s));
  EXPECT_EQ(policy_.AfterListError(kReset, kStart + 119s, 0).wait, Duration(30s));
  EXPECT_EQ(policy_.AfterListError(kReset, kStart + 240s, 0).wait, Duration(800ms));
}

TEST_F(ReflectorPolicyTest, WaitsAsLongAsTheServerAsks) {
  KubeError throttled = Answered(ErrorCode::kThrottled, 429);
  throttled.retry_after = 17s;
  EXPECT_EQ(policy_.AfterListError(throttled, kStart, 0).wait, Duration(17s));
  throttled.retry_after = 1ms;
  EXPECT_EQ(policy_.AfterListError(throttled, kStart, 0).wait, Duration(1600ms));
}

class StreamingPolicyTest : public testing::Test {
 protected:
  ReflectorPolicy policy_{ReflectorTiming(), /*stream_lists=*/true};
};

TEST_F(StreamingPolicyTest, ListsByStreamAgainAfterAnExpiredPosition) {
  EXPECT_EQ(policy_.Start(), (ReflectorPolicy::Step{.action = ReflectorAction::kStreamList}));
  EXPECT_EQ(policy_.AfterList("7", 0).resource_version, "7");
  const auto again = policy_.AfterWatch(Answered(ErrorCode::kGone, 410), kStart, kStart + 1min, 0);
  EXPECT_EQ(again.action, ReflectorAction::kStreamList);
}

TEST_F(StreamingPolicyTest, ARefusalIsTakenOnceAndIsNoTrouble) {
  const std::optional<KubeError> refusals[] = {Answered(ErrorCode::kInvalid, 422),
                                               Answered(ErrorCode::kInvalid, 400), std::nullopt};
  for (const auto& refusal : refusals) {
    ReflectorPolicy policy{ReflectorTiming(), /*stream_lists=*/true};
    EXPECT_EQ(policy.AfterStreamedListError(refusal, kStart, 0),
              (ReflectorPolicy::Step{.action = ReflectorAction::kList}));
    policy.AfterList("7", 0);
    EXPECT_EQ(policy.AfterWatch(Answered(ErrorCode::kGone, 410), kStart, kStart + 1min, 0).action,
              ReflectorAction::kList)
        << "streamed lists are not tried again";
  }
}

TEST_F(StreamingPolicyTest, AfterAnyOtherErrorTheNextListComesInPagesAndTheOneAfterItByStream) {
  for (const KubeError& error : {kReset, KubeError(ErrorCode::kInvalid, "an endless line"),
                                 Answered(ErrorCode::kThrottled, 429)}) {
    ReflectorPolicy policy{ReflectorTiming(), /*stream_lists=*/true};
    const auto step = policy.AfterStreamedListError(error, kStart, 0);
    EXPECT_EQ(step.action, ReflectorAction::kList);
    EXPECT_EQ(step.wait, Duration(800ms));
    EXPECT_EQ(step.restart_reason, ToString(error.code));
    EXPECT_EQ(policy.AfterListError(kReset, kStart, 0).action, ReflectorAction::kList);
    policy.AfterList("7", 0);
    EXPECT_EQ(policy.AfterWatch(Answered(ErrorCode::kGone, 410), kStart, kStart + 5min, 0).action,
              ReflectorAction::kStreamList);
  }
}

}  // namespace
}  // namespace pliant::kube
