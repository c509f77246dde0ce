#include "base/lifetime.h"

#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include <gtest/gtest.h>

namespace pliant {
namespace {

TEST(Lifetime, GuardsCallbacksUntilItIsOver) {
  std::vector<int> heard;
  std::optional<Lifetime> lifetime(std::in_place);
  const std::function<void(int)> callback =
      lifetime->Guard([&heard](int value) { heard.push_back(value); });
  callback(1);
  lifetime.reset();
  callback(2);
  EXPECT_EQ(heard, (std::vector<int>{1}));
}

TEST(Lifetime, RenewedEndsOnlyWhatWasGuardedBefore) {
  std::vector<int> heard;
  Lifetime lifetime;
  const auto note = [&heard](int value) { heard.push_back(value); };
  const std::function<void(int)> before = lifetime.Guard(note);
  lifetime.Renew();
  const std::function<void(int)> after = lifetime.Guard(note);
  before(1);
  after(2);
  EXPECT_EQ(heard, (std::vector<int>{2}));
}

TEST(Lifetime, ACallbackMayEndItAndSee) {
  auto lifetime = std::make_unique<Lifetime>();
  bool over = false;
  const std::function<void()> callback = lifetime->Guard([&] {
    const Lifetime::Watch watch = lifetime->watch();
    EXPECT_FALSE(watch.over());
    lifetime.reset();
    over = watch.over();
  });
  callback();
  EXPECT_TRUE(over);
}

TEST(Lifetime, HandsOnWhatCannotBeCopied) {
  const Lifetime lifetime;
  std::unique_ptr<int> got;
  auto callback = lifetime.Guard([&got](std::unique_ptr<int> value) { got = std::move(value); });
  callback(std::make_unique<int>(3));
  ASSERT_NE(got, nullptr);
  EXPECT_EQ(*got, 3);
}

}  // namespace
}  // namespace pliant
