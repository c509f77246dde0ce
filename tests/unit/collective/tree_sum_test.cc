#include "trainer/collective/tree_sum.h"

#include <cmath>
#include <cstdint>
#include <random>
#include <span>
#include <vector>

#include <gtest/gtest.h>

namespace pliant {
namespace {

std::vector<float> RandomFloats(std::size_t size, std::uint32_t seed) {
  std::mt19937 random(seed);
  // The values have very different sizes, so that a wrong order changes the last bits.
  std::uniform_int_distribution<int> exponent(-20, 20);
  std::uniform_real_distribution<float> mantissa(-1, 1);
  std::vector<float> values(size);
  for (float& value : values) value = std::ldexp(mantissa(random), exponent(random));
  return values;
}

TEST(AddFloats, AddsEachElementOnce) {
  for (const std::size_t size : {0U, 1U, 15U, 16U, 17U, 1000U}) {
    const std::vector<float> left = RandomFloats(size, 1);
    std::vector<float> right = RandomFloats(size, 2);
    std::vector<float> want(size);
    for (std::size_t i = 0; i < size; ++i) want[i] = left[i] + right[i];
    std::vector<float> out(size);
    AddFloats(left, right, out);
    EXPECT_EQ(out, want);
    AddFloats(left, right, right);
    EXPECT_EQ(right, want) << "the result overwrites an operand";
  }
}

TEST(TreeSum, EqualsThePlainTreeForEveryMap) {
  constexpr int kShards = 16;
  constexpr std::size_t kSize = 5000;  // more than one chunk, with a remainder
  std::vector<std::vector<float>> leaves;
  for (std::uint32_t shard = 0; shard < kShards; ++shard)
    leaves.push_back(RandomFloats(kSize, shard));
  const auto add = [](const std::vector<float>& left, const std::vector<float>& right) {
    std::vector<float> sum(left.size());
    for (std::size_t i = 0; i < sum.size(); ++i) sum[i] = left[i] + right[i];
    return sum;
  };
  std::vector<float> want = SumTree<std::vector<float>>(leaves, add);
  for (float& value : want) value /= 37.0F;

  TreeSum tree;  // used again
  for (int world = 1; world <= kShards; ++world) {
    const ShardMap map = AssignShards(kShards, world);
    const std::vector<NodeIndex> indices = NodesOf(map);
    std::vector<std::vector<float>> nodes;
    for (const NodeIndex node : indices) {
      const ShardBlock block = BlockOf(kShards, node);
      nodes.push_back(SumTree<std::vector<float>>(
          std::span(leaves).subspan(static_cast<std::size_t>(block.first),
                                    static_cast<std::size_t>(block.count)),
          add));
    }
    const std::vector<std::span<const float>> inputs(nodes.begin(), nodes.end());
    std::vector<float> out(kSize);
    tree.Sum(LevelsOf(kShards, indices), inputs, 37.0F, out);
    EXPECT_EQ(out, want) << "world size " << world;
  }
}

TEST(TreeSum, GivesTheBitsOfAChain) {
  TreeSum tree;
  for (const std::size_t count : {1U, 2U, 3U, 7U}) {
    std::vector<std::vector<float>> values;
    for (std::uint32_t i = 0; i < count; ++i) values.push_back(RandomFloats(3000, i));
    std::vector<float> want = values.back();
    for (std::size_t i = count - 1; i > 0; --i) AddFloats(values[i - 1], want, want);
    const std::vector<std::span<const float>> inputs(values.begin(), values.end());
    std::vector<float> out(3000);
    tree.Sum(ChainOf(count), inputs, 1, out);
    EXPECT_EQ(out, want) << count;
  }
}

}  // namespace
}  // namespace pliant
