#include "trainer/collective/buckets.h"

#include <cstdint>
#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace pliant {
namespace {

TEST(BucketLayout, CutsFromTheEnd) {
  struct Case {
    std::string name;
    std::size_t elements;
    BucketSizes sizes;
    std::vector<ElementRange> want;
  };
  const Case cases[] = {
      {"nothing", 0, {16, 16}, {}},
      {"less than a bucket", 10, {16, 64}, {{0, 10}}},
      {"a bucket", 16, {16, 64}, {{0, 16}}},
      {"a small first one", 200, {16, 64}, {{176, 24}, {112, 64}, {48, 64}, {0, 48}}},
      {"on cache lines", 100, {10, 20}, {{80, 20}, {48, 32}, {16, 32}, {0, 16}}},
      {"the second is the rest", 100, {32, 1000}, {{64, 36}, {0, 64}}},
  };
  for (const Case& c : cases) {
    const BucketLayout layout(c.elements, c.sizes);
    std::vector<ElementRange> found;
    for (std::uint32_t bucket = 0; bucket < layout.count(); ++bucket)
      found.push_back(layout.RangeOf(bucket));
    EXPECT_EQ(found, c.want) << c.name;
  }
}

TEST(BucketLayout, EveryElementIsInOneBucket) {
  for (const std::size_t elements : {1, 15, 16, 17, 48, 333, 1000}) {
    for (const std::size_t first : {1, 16, 40, 2000}) {
      for (const std::size_t rest : {1, 16, 100, 2000}) {
        const BucketLayout layout(elements, {.first = first, .rest = rest});
        std::size_t end = elements;
        for (std::uint32_t bucket = 0; bucket < layout.count(); ++bucket) {
          const ElementRange range = layout.RangeOf(bucket);
          EXPECT_EQ(range.end(), end);
          EXPECT_GT(range.size, 0U);
          EXPECT_EQ(range.begin % 16, 0U);
          for (std::size_t i = range.begin; i < range.end(); ++i)
            ASSERT_EQ(layout.BucketOf(i), bucket);
          end = range.begin;
        }
        EXPECT_EQ(end, 0U);
      }
    }
  }
}

TEST(BucketLayout, EqualCutsAreEqual) {
  EXPECT_EQ(BucketLayout(100, {1000, 16}), BucketLayout(100, {100, 64}));
  EXPECT_EQ(BucketLayout(100, {16, 84}), BucketLayout(100, {16, 1000}));
  EXPECT_NE(BucketLayout(100, {16, 16}), BucketLayout(100, {16, 32}));
}

}  // namespace
}  // namespace pliant
