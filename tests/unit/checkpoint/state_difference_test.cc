#include "trainer/checkpoint/state_difference.h"

#include <span>
#include <vector>

#include <gtest/gtest.h>

namespace pliant {
namespace {

// A state of two tensors, which each case modifies.
struct TestState {
  std::vector<float> weight = {1, 2, 3, 4};
  std::vector<double> momentum = {0, 0};

  StateDict view() {
    return {
        {"model.weight", DType::kFloat32, {2, 2}, std::as_writable_bytes(std::span(weight))},
        {"optimizer.momentum", DType::kFloat64, {2}, std::as_writable_bytes(std::span(momentum))}};
  }
};

TEST(StateDifferenceTest, TheSameBitsHaveNone) {
  TestState a;
  TestState b;
  EXPECT_EQ(FindDifference(a.view(), b.view()), std::nullopt);
}

TEST(StateDifferenceTest, NamesTheFirstTensorAndElement) {
  TestState a;
  TestState b;
  b.weight[2] = 3.0000002F;
  b.weight[3] = 5;
  b.momentum[1] = -0.0;  // equal in value, not in bits
  const auto found = FindDifference(a.view(), b.view());
  EXPECT_EQ(found,
            (StateDifference{.tensor = "model.weight", .element = 2, .elements = 2, .tensors = 2}));
  EXPECT_EQ(
      ToString(*found),
      "model.weight differs in 2 of its elements, the first is number 2; tensors that differ: 2");
}

TEST(StateDifferenceTest, FindsMissingTensorsAndOtherShapes) {
  TestState a;
  TestState b;
  StateDict fewer = b.view();
  fewer.pop_back();
  EXPECT_EQ(FindDifference(a.view(), fewer),
            (StateDifference{.tensor = "optimizer.momentum", .tensors = 1}));
  EXPECT_EQ(FindDifference(fewer, a.view()),
            (StateDifference{.tensor = "optimizer.momentum", .tensors = 1}));
  StateDict flat = b.view();
  flat[0].shape = {4};
  EXPECT_EQ(FindDifference(a.view(), flat),
            (StateDifference{.tensor = "model.weight", .tensors = 1}));
}

}  // namespace
}  // namespace pliant
