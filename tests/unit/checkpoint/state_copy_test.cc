#include "trainer/checkpoint/state_copy.h"

#include <utility>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/checkpoint/training_state.h"

namespace pliant {
namespace {

using ::testing::HasSubstr;

TEST(StateCopy, IsApartFromWhatItCopied) {
  TrainingState state(1);
  StateCopy copy = StateCopy::Of(state.View());
  const auto before = Contents(state.View());
  state.View()[1].bytes[0] ^= std::byte{1};
  EXPECT_EQ(Contents(copy.view()), before);
  EXPECT_NE(Contents(state.View()), before);
  EXPECT_GE(copy.bytes(), 85U);

  const StateCopy moved = std::move(copy);
  EXPECT_EQ(Contents(moved.view()), before);
}

TEST(StateCopy, UsesItsMemoryAgain) {
  TrainingState first(1);
  TrainingState second(2);
  StateCopy copy = StateCopy::Of(first.View());
  const std::byte* const memory = copy.view().front().bytes.data();
  ASSERT_TRUE(copy.CopyFrom(second.View()));
  EXPECT_EQ(copy.view().front().bytes.data(), memory);
  EXPECT_EQ(Contents(copy.view()), Contents(second.View()));
  StateDict fewer = second.View();
  fewer.pop_back();
  ASSERT_TRUE(copy.CopyFrom(fewer));
  EXPECT_EQ(Contents(copy.view()), Contents(fewer));
}

TEST(CopyState, FindsTensorsByName) {
  TrainingState from(1);
  TrainingState to(2);
  StateDict reversed = from.View();
  std::ranges::reverse(reversed);
  ASSERT_TRUE(CopyState(reversed, to.View()));
  EXPECT_EQ(Contents(to.View()), Contents(from.View()));
}

TEST(CopyState, NamesWhatDoesNotFitAndCopiesNothing) {
  TrainingState from(1);
  TrainingState to(2);
  const auto before = Contents(to.View());
  struct Case {
    std::string named;
    StateDict from;
    StateDict to;
  };
  const auto with = [](StateDict state, auto change) {
    change(state);
    return state;
  };
  const Case cases[] = {
      {"model.mask of the model is missing",
       with(from.View(), [](StateDict& s) { s.erase(s.begin()); }), to.View()},
      {"model.mask of the state is not in the model", from.View(),
       with(to.View(), [](StateDict& s) { s.erase(s.begin()); })},
      {"model.fc.weight is F32 [3,2] in the state, and F32 [2,3] in the model",
       with(from.View(), [](StateDict& s) { s[1].shape = {3, 2}; }), to.View()},
      {"model.fc.bias is F16 [3]",
       with(from.View(), [](StateDict& s) { s[2].dtype = DType::kFloat16; }), to.View()},
      {"twice", with(from.View(), [](StateDict& s) { s.push_back(s.front()); }), to.View()},
  };
  for (const Case& c : cases) {
    const Status copied = CopyState(c.from, c.to);
    ASSERT_FALSE(copied) << c.named;
    EXPECT_EQ(copied.error().code, ErrorCode::kInvalid);
    EXPECT_THAT(copied.error().message, HasSubstr(c.named));
    EXPECT_EQ(Contents(to.View()), before);
  }
}

}  // namespace
}  // namespace pliant
