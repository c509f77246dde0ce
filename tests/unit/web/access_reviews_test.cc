#include "operator/web/access_reviews.h"

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/sim_event_loop.h"

namespace pliant::web {
namespace {
using namespace std::chrono_literals;
using testing::HasSubstr;
using testing::Not;

TokenHash Token(int number) { return HashOf("token-" + std::to_string(number)); }

TEST(AccessCache, ForgetsWhatItsTimeIsOver) {
  AccessCache cache;
  TimePoint now{1h};
  cache.Put(Token(1), Access::kGranted, now);
  cache.Put(Token(2), Access::kForbidden, now);
  cache.Put(Token(3), Access::kUnknown, now);
  cache.Put(Token(4), Access::kUndecided, now);
  EXPECT_EQ(cache.Find(Token(1), now + 59s), Access::kGranted);
  EXPECT_EQ(cache.Find(Token(1), now + 60s), std::nullopt);
  EXPECT_EQ(cache.Find(Token(2), now + 9s), Access::kForbidden);
  EXPECT_EQ(cache.Find(Token(2), now + 10s), std::nullopt);
  EXPECT_EQ(cache.Find(Token(3), now + 9s), Access::kUnknown);
  EXPECT_EQ(cache.Find(Token(4), now), std::nullopt) << "the next lookup asks again";
  cache.Put(Token(1), Access::kForbidden, now + 1s);
  EXPECT_EQ(cache.Find(Token(1), now + 2s), Access::kForbidden) << "the newest entry counts";
  cache.Put(Token(5), Access::kGranted, now + 2min);
  EXPECT_EQ(cache.size(), 1u);
}

TEST(AccessCache, GuessedTokensPushOutNobody) {
  AccessCache cache;
  const TimePoint now{1h};
  cache.Put(Token(0), Access::kGranted, now);
  for (int i = 1; i < 1000; ++i) cache.Put(Token(i), Access::kUnknown, now + 1ms * i);
  EXPECT_EQ(cache.size(), AccessCache::kMaxEntries);
  EXPECT_EQ(cache.Find(Token(0), now + 1s), Access::kGranted);
  EXPECT_EQ(cache.Find(Token(999), now + 1s), Access::kUnknown);
  for (int i = 1000; i < 2000; ++i) cache.Put(Token(i), Access::kGranted, now + 1ms * i);
  EXPECT_EQ(cache.size(), AccessCache::kMaxEntries);
  EXPECT_EQ(cache.Find(Token(1999), now + 2s), Access::kGranted);
  cache.Put(Token(2000), Access::kUnknown, now + 2s);
  EXPECT_EQ(cache.Find(Token(2000), now + 2s), std::nullopt);
  EXPECT_EQ(cache.size(), AccessCache::kMaxEntries);
}

class AccessReviewsTest : public testing::Test {
 protected:
  void Ask(const std::string& token) {
    reviews_->Ask(token, [this](Access access) { got_.push_back(access); });
  }
  // Runs the reviews, as worker threads would.
  void RunReviews() {
    for (auto& task : std::exchange(tasks_, {})) task();
    loop_.RunFor(0s);
  }

  SimEventLoop loop_;
  std::vector<std::function<void()>> tasks_;
  std::vector<std::string> reviewed_;
  kube::KubeResult<Access> answer_ = Access::kGranted;
  std::optional<AccessReviews> reviews_{std::in_place, loop_,
                                        [this](auto task) { tasks_.push_back(std::move(task)); },
                                        [this](const std::string& token) {
                                          reviewed_.push_back(token);
                                          return answer_;
                                        }};
  std::vector<Access> got_;
};

TEST_F(AccessReviewsTest, ATokenIsReviewedOnceForAllWhoShowIt) {
  Ask("prometheus");
  Ask("prometheus");
  EXPECT_EQ(tasks_.size(), 1u);
  RunReviews();
  Ask("prometheus");
  EXPECT_EQ(got_, std::vector(3, Access::kGranted));
  EXPECT_EQ(reviewed_, std::vector<std::string>{"prometheus"});
  loop_.RunFor(AccessCache::kGrantedFor);
  answer_ = Access::kUnknown;  // the token has expired
  Ask("prometheus");
  RunReviews();
  EXPECT_EQ(got_.back(), Access::kUnknown);
}

TEST_F(AccessReviewsTest, SendsNoInvalidTokenToTheServer) {
  for (const char* text : {"", "a b", "\xff\xfe"}) Ask(text);
  EXPECT_EQ(got_, std::vector(3, Access::kUnknown));
  EXPECT_TRUE(tasks_.empty());
}

TEST_F(AccessReviewsTest, FewAreUnderWayAtATime) {
  for (std::size_t i = 0; i < AccessReviews::kMaxUnderWay; ++i) Ask("guess-" + std::to_string(i));
  EXPECT_TRUE(got_.empty());
  Ask("one-more");
  EXPECT_EQ(got_, std::vector{Access::kUndecided});
  EXPECT_EQ(tasks_.size(), AccessReviews::kMaxUnderWay);
  RunReviews();
  Ask("one-more");
  EXPECT_EQ(tasks_.size(), 1u);
}

TEST_F(AccessReviewsTest, ReportsASilentServerOnceAndWithoutTheToken) {
  answer_ = std::unexpected(kube::KubeError(ErrorCode::kTimeout, "sent secret-token: no answer"));
  testing::internal::CaptureStderr();
  for (int i = 0; i < 3; ++i) {
    Ask("secret-token");
    RunReviews();
  }
  answer_ = Access::kForbidden;
  Ask("secret-token");
  RunReviews();
  const std::string log = testing::internal::GetCapturedStderr();
  EXPECT_EQ(got_, (std::vector{Access::kUndecided, Access::kUndecided, Access::kUndecided,
                               Access::kForbidden}));
  EXPECT_EQ(reviewed_.size(), 4u) << "an unknown result is not cached";
  EXPECT_THAT(log, HasSubstr("does not review tokens"));
  EXPECT_EQ(log.find("does not review tokens"), log.rfind("does not review tokens"));
  EXPECT_THAT(log, HasSubstr("reviews tokens again"));
  EXPECT_THAT(log, Not(HasSubstr("secret-token")));
}

TEST_F(AccessReviewsTest, AnAnswerThatComesTooLateIsDropped) {
  Ask("prometheus");
  reviews_.reset();
  RunReviews();
  EXPECT_TRUE(got_.empty());
}

}  // namespace
}  // namespace pliant::web
