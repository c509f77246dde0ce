#include "simulator/model/placement.h"

#include <gtest/gtest.h>

namespace pliant::simulator {
namespace {

struct RotationCase {
  Placement placement;
  Placement want;
};

TEST(PlacementTest, TheLeastRotationIsNotSorted) {
  const RotationCase kCases[] = {
      {{}, {}},
      {{4}, {4}},
      {{2, 1}, {1, 2}},
      {{1, 2, 1}, {1, 1, 2}},
      {{3, 1, 2}, {1, 2, 3}},
      {{3, 2, 1}, {1, 3, 2}},
      {{2, 2, 2}, {2, 2, 2}},
      {{1, 2, 1, 1}, {1, 1, 1, 2}},
      {{1, 3, 1, 2}, {1, 2, 1, 3}},
  };
  for (const RotationCase& each : kCases) EXPECT_EQ(LeastRotation(each.placement), each.want);
}

TEST(PlacementTest, PackedFillsNodes) {
  EXPECT_EQ(Packed(0, 4), Placement());
  EXPECT_EQ(Packed(3, 4), Placement({3}));
  EXPECT_EQ(Packed(10, 4), Placement({4, 4, 2}));
  EXPECT_EQ(Learners({4, 4, 2}), 10);
}

}  // namespace
}  // namespace pliant::simulator
