#include "base/backoff.h"

#include <gtest/gtest.h>

namespace pliant {
namespace {
using namespace std::chrono_literals;

TEST(Backoff, DoublesUpToTheMost) {
  Backoff backoff({.first = 1s, .most = 5s, .factor = 2.0, .jitter = 0.0});
  EXPECT_EQ(backoff.Next(0.9), Duration(1s));
  EXPECT_EQ(backoff.Next(0.9), Duration(2s));
  EXPECT_EQ(backoff.Next(0.9), Duration(4s));
  EXPECT_EQ(backoff.Next(0.9), Duration(5s));
  backoff.Reset();
  EXPECT_EQ(backoff.Next(0.9), Duration(1s));
}

TEST(Backoff, JitterStretchesADelayByTheRandomNumberGiven) {
  Backoff backoff({.first = 1s, .most = 5s, .factor = 2.0, .jitter = 1.0});
  EXPECT_EQ(backoff.Next(0.5), Duration(1500ms));
  EXPECT_EQ(backoff.Next(0.0), Duration(2s));
}

}  // namespace
}  // namespace pliant
