#include "trainer/data/shard_sums.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace pliant {
namespace {

TEST(ShardSums, AShardWithoutAWeightWeighsItsSamples) {
  const ShardSums plain{.samples = 3, .loss = 6};
  const ShardSums tokens{.samples = 2, .loss = 10, .weight = 7};
  EXPECT_FALSE((plain + plain).weight) << "a program that weighs nothing stays so";
  EXPECT_EQ((plain + tokens).weight, 10);
  EXPECT_EQ((tokens + plain).weight, 10);
  EXPECT_EQ((tokens + ShardSums{}).weight, 7) << "a shard without samples has no weight";
  EXPECT_EQ((plain + tokens).samples, 5);
  EXPECT_EQ(plain.total_weight(), 3);
  EXPECT_EQ(tokens.total_weight(), 7);
}

TEST(ShardSums, ANameThatAShardLacksCountsAsZero) {
  const ShardSums one{.samples = 1, .named = {{"entropy", 2}, {"right", 1}}};
  const ShardSums other{.samples = 1, .named = {{"entropy", 3}}};
  const ShardSums none{.samples = 1};
  const std::map<std::string, double> both = {{"entropy", 5}, {"right", 1}};
  EXPECT_EQ((one + other).named, both);
  EXPECT_EQ((other + one).named, both);
  EXPECT_EQ((none + one).named, one.named);
  EXPECT_TRUE((none + none).named.empty());
}

TEST(ShardSums, ASetValueIsNeverMinusZero) {
  ShardSums sums{.named = {{"a", 1}, {"b", 1}}};
  sums.SetNamed(std::vector{-0.0, 2.0});
  EXPECT_FALSE(std::signbit(sums.named["a"]));
  EXPECT_EQ(sums.named["b"], 2);
}

TEST(ShardSums, TheFactorOfAMeanIsSamplesByWeight) {
  EXPECT_EQ(MeanFactor(32, {.samples = 32, .loss = 1}), 1);
  EXPECT_EQ(MeanFactor(32, {.samples = 32, .loss = 1, .weight = 64}), 0.5);
  EXPECT_EQ(MeanFactor(32, {.samples = 32, .weight = 0}), 0) << "no gradient, and not NaN";
}

TEST(ShardSums, ANameFitsInLogsAndLabels) {
  struct Case {
    std::string name;
    bool fits;
  };
  const Case cases[] = {{"entropy", true},
                        {"eval/top-5_Share.x", true},
                        {std::string(kMaxSumName, 'a'), true},
                        {std::string(kMaxSumName + 1, 'a'), false},
                        {"", false},
                        {"a b", false},
                        {"ä", false},
                        {std::string("a\0b", 3), false},
                        {"weight", false},
                        {"samples", false},
                        {"loss", false},
                        {"correct", false},
                        {"accuracy", false}};
  for (const Case& c : cases) EXPECT_EQ(IsSumName(c.name), c.fits) << c.name;
}

}  // namespace
}  // namespace pliant
