#include "operator/controller/model/resize_meter.h"

#include <optional>

#include <gtest/gtest.h>

#include "tests/unit/controller/job_fixture.h"

namespace pliant::controller {
namespace {

// Two learners train, and two more get their gates opened at second 10.
class ResizeMeterTest : public testing::Test {
 protected:
  static constexpr double kFirstLook = 5;
  void Observe(double seconds) {
    ObserveClocks(view_, At(seconds), view_.soft_state.clocks);
    ObserveResizes(view_, seconds == kFirstLook, At(seconds), view_.soft_state.resizes);
  }
  std::optional<double> start_seconds() const { return view_.soft_state.resizes.start_seconds; }
  void SetUp() override {
    Observe(kFirstLook);
    view_.learners.push_back(Learner(2, Life::kStarting));
    view_.learners.push_back(Learner(3, Life::kStarting));
    Observe(10);
  }

  JobView view_ = TrainingView(2);
};

TEST_F(ResizeMeterTest, AStartLastsFromTheGateToTheMembership) {
  EXPECT_EQ(start_seconds(), std::nullopt) << "those that trained when it looked first";
  view_.coordinator = Training({0, 1, 2});
  Observe(30);
  EXPECT_EQ(start_seconds(), 20);
  Observe(35);
  EXPECT_EQ(start_seconds(), 20) << "each start counts once";
  view_.coordinator = Training({0, 1, 2, 3});
  Observe(70);
  EXPECT_EQ(start_seconds(), 40) << "the mean of what it was and of 60";
}

TEST_F(ResizeMeterTest, OneThatComesBackDoesNotCount) {
  view_.coordinator = Training({0, 1, 2, 3});
  Observe(30);
  view_.coordinator = {};
  Observe(3000);
  view_.coordinator = Training({0, 1, 2, 3});
  Observe(3600);
  EXPECT_EQ(start_seconds(), 20) << "its coordinator was replaced, or it was lost for a while";
}

TEST_F(ResizeMeterTest, ANewLeaderDoesNotKnowWhenLearnersWereStarted) {
  view_.soft_state = {};
  view_.coordinator = {};
  Observe(kFirstLook);
  view_.coordinator = Training({0, 1, 2, 3});
  Observe(6);
  EXPECT_EQ(start_seconds(), std::nullopt);
}

TEST_F(ResizeMeterTest, OneThatIsLostBeforeItTrainsDoesNotCount) {
  view_.learners.pop_back();
  view_.learners.pop_back();
  Observe(60);
  EXPECT_TRUE(view_.soft_state.resizes.starting.empty());
  EXPECT_EQ(start_seconds(), std::nullopt);
}

TEST_F(ResizeMeterTest, TheHoldIsOfWhatWasMeasured) {
  EXPECT_EQ(HoldPercentOf(view_, std::nullopt), 0) << "nothing was";
  view_.coordinator = Training({0, 1, 2, 3});
  Observe(130);
  EXPECT_EQ(HoldPercentOf(view_, std::nullopt), 25) << "starts of 120 s";
  EXPECT_EQ(HoldPercentOf(view_, 130), 100) << "it ends soon";
  Edit(view_.coordinator.progress).resizes = {{.pause_seconds = 60},
                                              {.pause_seconds = std::nullopt}};
  EXPECT_EQ(HoldPercentOf(view_, std::nullopt), 75) << "with the newest pause that is known";
  view_.coordinator = {};
  EXPECT_EQ(HoldPercentOf(view_, std::nullopt), 0) << "its coordinator is silent";
}

}  // namespace
}  // namespace pliant::controller
