#include "trainer/runtime/bucket_tuner.h"

#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace pliant {
namespace {

using std::chrono::milliseconds;

// What is chosen when ticks take so long; `ticks` counts those that it took.
std::size_t Tune(const std::vector<Duration>& took, int& ticks) {
  BucketTuner tuner(took.size());
  std::size_t choice = 0;  // of the first tick
  std::size_t next = tuner.Next();
  for (ticks = 0; !tuner.done(); ++ticks) {
    tuner.OnTick(choice, took[choice], true);
    choice = next;  // said in the tick before
    next = tuner.Next();
  }
  return tuner.Next();
}

TEST(BucketTuner, ChoosesTheQuickest) {
  struct Case {
    std::string name;
    std::vector<Duration> took;
    std::size_t want;
  };
  const Case cases[] = {
      {"one choice", {milliseconds(100)}, 0},
      {"the second", {milliseconds(100), milliseconds(90), milliseconds(95)}, 1},
      {"the last", {milliseconds(100), milliseconds(99), milliseconds(70)}, 2},
      {"the first", {milliseconds(90), milliseconds(100), milliseconds(95)}, 0},
      {"no clear gain", {milliseconds(100), milliseconds(99), milliseconds(101)}, 0},
      {"equal", {milliseconds(100), milliseconds(100)}, 0},
      {"no time at all", {milliseconds(0), milliseconds(0)}, 0},
  };
  for (const Case& c : cases) {
    int ticks = 0;
    EXPECT_EQ(Tune(c.took, ticks), c.want) << c.name;
    EXPECT_LE(ticks, 6 * static_cast<int>(c.took.size())) << c.name;
  }
}

TEST(BucketTuner, AFewSlowTicksDecideNothing) {
  BucketTuner tuner(2);
  int seen[2] = {0, 0};
  while (!tuner.done()) {
    const std::size_t choice = tuner.Next();
    // The better one makes buffers at first, and meets two pauses.
    const int tick = seen[choice]++;
    const bool slow = choice == 1 && (tick == 0 || tick == 2 || tick == 5);
    tuner.OnTick(choice, slow ? milliseconds(500) : milliseconds(choice == 1 ? 80 : 100), true);
  }
  EXPECT_EQ(tuner.Next(), 1U);
}

TEST(BucketTuner, TicksUnlikeMostDoNotCount) {
  BucketTuner tuner(2);
  for (int i = 0; i < 100; ++i) {
    EXPECT_FALSE(tuner.OnTick(tuner.Next(), milliseconds(1), /*whole=*/false));
  }
  EXPECT_FALSE(tuner.done());
}

TEST(BucketTuner, SaysOnceWhatItChose) {
  BucketTuner tuner(2);
  int said = 0;
  for (int i = 0; i < 100; ++i) {
    const std::size_t choice = tuner.Next();
    said += tuner.OnTick(choice, milliseconds(choice == 1 ? 1 : 2), true).has_value() ? 1 : 0;
  }
  EXPECT_EQ(said, 1);
  EXPECT_EQ(tuner.Next(), 1U);
}

TEST(DistinctBucketSizes, LeavesOutEqualCuts) {
  const std::vector<BucketSizes> sizes = DefaultBucketSizes();
  EXPECT_EQ(DistinctBucketSizes(1000, sizes).size(), 1U);
  EXPECT_EQ(DistinctBucketSizes(100000, sizes).size(), 3U)
      << "the last two differ in the rest only";
  EXPECT_EQ(DistinctBucketSizes(std::size_t{50} << 20, sizes), sizes);
}

}  // namespace
}  // namespace pliant
