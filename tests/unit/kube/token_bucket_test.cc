#include "operator/kube/token_bucket.h"

#include <gtest/gtest.h>

#include "tests/unit/kube/start.h"

namespace pliant::kube {
namespace {
using namespace std::chrono_literals;

TEST(TokenBucket, LetsABurstThroughAndThenTheRate) {
  TokenBucket bucket(10, 2);
  EXPECT_EQ(bucket.Reserve(kStart), Duration(0s));
  EXPECT_EQ(bucket.Reserve(kStart), Duration(0s));
  EXPECT_EQ(bucket.Reserve(kStart), Duration(100ms));
  EXPECT_EQ(bucket.Reserve(kStart), Duration(200ms));
  EXPECT_EQ(bucket.Reserve(kStart + 200ms), Duration(100ms)) << "two reservations come first";
  EXPECT_EQ(bucket.Reserve(kStart + 1h), Duration(0s));
  EXPECT_EQ(bucket.Reserve(kStart + 1h), Duration(0s));
  EXPECT_EQ(bucket.Reserve(kStart + 1h), Duration(100ms)) << "at most the burst accumulates";
}

TEST(TokenBucket, TakesOnlyWhatIsThere) {
  TokenBucket bucket(1, 1);
  EXPECT_TRUE(bucket.TryTake(kStart));
  EXPECT_FALSE(bucket.TryTake(kStart + 500ms));
  EXPECT_TRUE(bucket.TryTake(kStart + 1s));
}

TEST(TokenBucket, WithoutARateThereIsNoLimit) {
  TokenBucket bucket(0, 0);
  for (int i = 0; i < 1000; ++i) {
    ASSERT_EQ(bucket.Reserve(kStart), Duration(0s));
    ASSERT_TRUE(bucket.TryTake(kStart));
  }
}

}  // namespace
}  // namespace pliant::kube
