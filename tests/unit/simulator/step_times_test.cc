#include "simulator/model/step_times.h"

#include <string>

#include <gtest/gtest.h>

namespace pliant::simulator {
namespace {

StepTimes Example() {
  return StepTimes(
      {{.placement = {1}, .points = {{4, {.step = 1, .sync = 0}}, {8, {.step = 2, .sync = 0}}}},
       {.placement = {1, 1}, .points = {{4, {.step = 3, .sync = 1}}, {8, {.step = 5, .sync = 2}}}},
       // Two placements of three learners on two nodes: their mean counts for others.
       {.placement = {1, 2}, .points = {{4, {.step = 4, .sync = 2}}}},
       {.placement = {1, 1, 2}, .points = {{8, {.step = 10, .sync = 4}}}},
       {.placement = {1, 2, 1, 2}, .points = {{8, {.step = 10, .sync = 4}}}},
       {.placement = {1, 1, 2, 2}, .points = {{8, {.step = 20, .sync = 8}}}}},
      {{.nodes = 2, .learners = 5, .local = 4, .time = {.step = 6, .sync = 4}}},
      {{.nodes = 3, .learners = 5, .local = 6, .time = {.step = 7, .sync = 3}}});
}

struct TimeCase {
  std::string name;
  Placement placement;
  int local = 0;
  StepTime want;
};

TEST(StepTimesTest, TheClosestMeasurementCounts) {
  const TimeCase kCases[] = {
      {"a measured point", {1}, 4, {1, 0}},
      {"between measured points", {1}, 7, {1.75, 0}},
      {"the last measured point", {1, 1}, 8, {5, 2}},
      {"below the table the first point counts", {1, 1}, 1, {3, 1}},
      {"above the table the last point counts", {1, 1}, 99, {5, 2}},
      {"a rotation", {2, 1}, 4, {4, 2}},
      {"an extra point", {2, 1, 2}, 6, {7, 3}},
      {"not an extra point: other samples, so between sizes", {2, 1, 2}, 8, {10, 4}},
      {"scalability", {2, 3}, 4, {6, 4}},
      {"between numbers of learners", {2, 2}, 4, {5, 3}},
      {"other placements of the same size: their mean", {2, 2, 1, 1, 1}, 8, {15, 6}},
      {"the mean of two placements", {2, 1, 1, 1}, 8, {15, 6}},
      {"more learners than in any table", {5, 5}, 4, {6, 4}},
      {"more nodes than in any table", {1, 1, 1, 1, 1, 1}, 8, {15, 6}},
  };
  const StepTimes times = Example();
  for (const TimeCase& each : kCases) {
    EXPECT_EQ(times.At(each.placement, each.local), each.want) << each.name;
  }
}

TEST(StepTimesTest, NodesAreInterpolatedLast) {
  // Three nodes: between two nodes (5 learners: 6 s) and four nodes (5 learners: 9 s).
  const StepTimes times({{.placement = {1}, .points = {{4, {.step = 1, .sync = 0}}}}},
                        {{.nodes = 2, .learners = 4, .local = 4, .time = {.step = 5, .sync = 1}},
                         {.nodes = 2, .learners = 6, .local = 4, .time = {.step = 7, .sync = 3}},
                         {.nodes = 4, .learners = 4, .local = 4, .time = {.step = 8, .sync = 4}},
                         {.nodes = 4, .learners = 6, .local = 4, .time = {.step = 10, .sync = 6}}},
                        {});
  EXPECT_EQ(times.At({1, 2, 2}, 4), (StepTime{.step = 7.5, .sync = 3.5}));
}

}  // namespace
}  // namespace pliant::simulator
