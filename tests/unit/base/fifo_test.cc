#include "base/fifo.h"

#include <deque>
#include <memory>
#include <random>

#include <gtest/gtest.h>

namespace pliant {
namespace {

TEST(Fifo, IsAQueueHoweverItGrowsAndTurns) {
  std::mt19937 random(3);
  Fifo<int> fifo;
  std::deque<int> want;
  for (int i = 0; i < 10'000; ++i) {
    if (want.empty() || random() % 100 < 51) {
      fifo.push_back(i);
      want.push_back(i);
    } else {
      ASSERT_EQ(fifo.front(), want.front());
      ASSERT_EQ(fifo.take_front(), want.front());
      want.pop_front();
    }
    ASSERT_EQ(fifo.size(), want.size());
    ASSERT_EQ(fifo.empty(), want.empty());
    for (const std::size_t index : {std::size_t{0}, want.size() / 2}) {
      if (index >= want.size()) continue;
      ASSERT_EQ(fifo[index], want[index]);
    }
  }
  fifo.clear();
  EXPECT_TRUE(fifo.empty());
}

TEST(Fifo, LetsGoOfWhatIsTaken) {
  Fifo<std::shared_ptr<int>> fifo;
  const auto entry = std::make_shared<int>(1);
  fifo.push_back(entry);
  fifo.push_back(entry);
  EXPECT_EQ(entry.use_count(), 3);
  fifo.take_front();
  EXPECT_EQ(entry.use_count(), 2);
  fifo.clear();
  EXPECT_EQ(entry.use_count(), 1);
}

}  // namespace
}  // namespace pliant
