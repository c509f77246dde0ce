#include "base/default_shards.h"

#include <gtest/gtest.h>

namespace pliant {
namespace {

TEST(DefaultLogicalShards, IsThePowerOfTwoThatFits) {
  struct Case {
    std::uint64_t batch;
    std::uint64_t max_ranks;
    int want;
  };
  for (const Case& c : {Case{256, 8, 16}, Case{256, 1, 2}, Case{256, 3, 8}, Case{256, 5, 16},
                        Case{256, 1000, 256}, Case{96, 8, 16}, Case{96, 32, 32}, Case{100, 8, 4},
                        Case{7, 8, 1}, Case{1 << 24, 1024 * 16, 1 << 15}}) {
    EXPECT_EQ(DefaultLogicalShards(c.batch, c.max_ranks), c.want)
        << c.batch << " samples, " << c.max_ranks << " ranks";
  }
}

}  // namespace
}  // namespace pliant
