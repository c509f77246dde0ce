#include "base/cached.h"

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "base/sim_event_loop.h"

namespace pliant {
namespace {
using namespace std::chrono_literals;

class CachedTest : public testing::Test {
 protected:
  void Ask() {
    cached_->Get([this](const std::string& text) { got_.push_back(text); });
  }
  // Finishes the text that was begun last.
  void Finish() { made_.back()("text " + std::to_string(made_.size())); }

  using Texts = std::vector<std::string>;

  SimEventLoop loop_;
  std::vector<std::function<void(std::string)>> made_;
  std::optional<CachedText> cached_{std::in_place, loop_, 1s,
                                    [this](auto done) { made_.push_back(std::move(done)); }};
  Texts got_;
};

TEST_F(CachedTest, IsMadeOnceForAllWhoAskMeanwhile) {
  for (int i = 0; i < 3; ++i) Ask();
  EXPECT_EQ(made_.size(), 1u);
  loop_.RunFor(5s);
  EXPECT_EQ(got_, Texts());
  Ask();
  EXPECT_EQ(made_.size(), 1u) << "never two at a time, however long one takes";
  Finish();
  loop_.RunFor(0s);
  EXPECT_EQ(got_, Texts(4, "text 1"));
}

TEST_F(CachedTest, LivesForItsTimeFromWhenItWasBegun) {
  Ask();
  loop_.RunFor(400ms);
  Finish();
  loop_.RunFor(599ms);
  Ask();
  EXPECT_EQ(got_, Texts(2, "text 1"));
  loop_.RunFor(1ms);
  Ask();
  EXPECT_EQ(made_.size(), 2u);
  Finish();
  loop_.RunFor(0s);
  EXPECT_EQ(got_.back(), "text 2");
}

TEST_F(CachedTest, AValueForNobodyIsDropped) {
  Ask();
  cached_.reset();
  Finish();
  loop_.RunFor(1s);
  EXPECT_EQ(got_, Texts());
}

}  // namespace
}  // namespace pliant
