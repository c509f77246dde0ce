#include "operator/controller/rounds/rounds.h"

#include <chrono>
#include <vector>

#include <gtest/gtest.h>

#include "base/sim_event_loop.h"
#include "tests/unit/controller/job_fixture.h"

namespace pliant::controller {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

class RoundsTest : public testing::Test {
 protected:
  WallTime Now() const {
    return At(0) + std::chrono::floor<milliseconds>(loop_.Now().time_since_epoch());
  }
  Duration Elapsed() const { return loop_.Now().time_since_epoch(); }

  SimEventLoop loop_;
  bool current_ = true;
  std::optional<WallTime> again_at_;
  std::vector<Duration> rounds_held_;
  Rounds rounds_{loop_,
                 {.pace = {},
                  .now = [this] { return Now(); },
                  .is_current = [this] { return current_; },
                  .run =
                      [this](WallTime) {
                        rounds_held_.push_back(Elapsed());
                        return std::exchange(again_at_, std::nullopt);
                      }}};
};

TEST_F(RoundsTest, ChangesOfOneMomentHaveOneRound) {
  rounds_.Request();
  loop_.RunFor(milliseconds(10));
  rounds_.Request();
  loop_.RunFor(seconds(1));
  EXPECT_EQ(rounds_held_, std::vector<Duration>{milliseconds(30)});
}

TEST_F(RoundsTest, WithoutAChangeThereIsNone) {
  loop_.RunFor(seconds(60));
  EXPECT_TRUE(rounds_held_.empty());
}

TEST_F(RoundsTest, TimeMayChangeThePlan) {
  again_at_ = At(5);
  rounds_.Request();
  loop_.RunFor(seconds(60));
  EXPECT_EQ(rounds_held_, (std::vector<Duration>{milliseconds(20), seconds(5) + milliseconds(20)}));
}

TEST_F(RoundsTest, ARoundBeforeThatTimeHasThePlansNewTime) {
  again_at_ = At(5);
  rounds_.Request();
  loop_.RunFor(seconds(1));
  rounds_.Request();
  loop_.RunFor(seconds(60));
  EXPECT_EQ(rounds_held_.size(), 2u);
}

TEST_F(RoundsTest, NothingIsPlannedFromStoresThatAreBehind) {
  current_ = false;
  rounds_.Request();
  loop_.RunFor(seconds(10));
  EXPECT_TRUE(rounds_held_.empty());
  current_ = true;
  loop_.RunFor(seconds(10));
  EXPECT_EQ(rounds_held_.size(), 1u) << "the round was not lost";
}

}  // namespace
}  // namespace pliant::controller
