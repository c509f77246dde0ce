#include "operator/planner/apportion.h"

#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace pliant::planner {
namespace {

using testing::ContainerEq;

struct ApportionCase {
  std::string name;
  std::vector<Claimant> claimants;
  std::int64_t seats = 0;
  std::vector<std::int64_t> want;
  std::vector<std::int64_t> want_in_order;
};

Claimant Of(std::int64_t weight, std::int64_t cap) { return {.weight = weight, .cap = cap}; }

const ApportionCase kCases[] = {
    {.name = "nobody", .seats = 8},
    {.name = "no seats",
     .claimants = {Of(1, 4), Of(1, 4)},
     .want = {0, 0},
     .want_in_order = {0, 0}},
    {.name = "more nodes were lost than there were GPUs",
     .claimants = {Of(1, 4)},
     .seats = -3,
     .want = {0},
     .want_in_order = {0}},
    {.name = "equal weights",
     .claimants = {Of(1, 8), Of(1, 8)},
     .seats = 8,
     .want = {4, 4},
     .want_in_order = {8, 0}},
    {.name = "twice the weight, rounded to the nearest",
     .claimants = {Of(1, 8), Of(2, 8)},
     .seats = 8,
     .want = {3, 5},
     .want_in_order = {8, 0}},
    {.name = "what one cannot use goes to the others",
     .claimants = {Of(5, 2), Of(1, 9), Of(1, 9)},
     .seats = 10,
     .want = {2, 4, 4},
     .want_in_order = {2, 8, 0}},
    {.name = "of equal claims the first wins",
     .claimants = {Of(1, 8), Of(1, 8)},
     .seats = 3,
     .want = {2, 1},
     .want_in_order = {3, 0}},
    {.name = "unless the other has the seat already",
     .claimants = {Of(1, 8), {.weight = 1, .cap = 8, .held = 2}},
     .seats = 3,
     .want = {1, 2},
     .want_in_order = {3, 0}},
    {.name = "floors come first",
     .claimants = {Of(9, 8), {.weight = 1, .floor = 6, .cap = 8}},
     .seats = 8,
     .want = {2, 6},
     .want_in_order = {2, 6}},
    {.name = "no floor is more than what can be used",
     .claimants = {Of(1, 8), {.weight = 1, .floor = 6, .cap = 2}},
     .seats = 8,
     .want = {6, 2},
     .want_in_order = {6, 2}},
    {.name = "then what is kept",
     .claimants = {{.weight = 1, .kept = 7, .cap = 8}, {.weight = 1, .floor = 2, .cap = 8}},
     .seats = 8,
     .want = {6, 2},
     .want_in_order = {6, 2}},
    {.name = "floors beyond the seats are divided by weight",
     .claimants = {{.weight = 1, .floor = 8, .cap = 8}, {.weight = 3, .floor = 8, .cap = 8}},
     .seats = 8,
     .want = {2, 6},
     .want_in_order = {2, 6}},
};

TEST(Apportion, DividesSeats) {
  for (const ApportionCase& each : kCases) {
    SCOPED_TRACE(each.name);
    EXPECT_THAT(Apportion(each.claimants, each.seats), ContainerEq(each.want));
    EXPECT_THAT(ApportionInOrder(each.claimants, each.seats), ContainerEq(each.want_in_order));
  }
}

}  // namespace
}  // namespace pliant::planner
