#include "tests/fakes/cuda/race_detector.h"

#include <optional>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace pliant::fake_cuda {
namespace {

using testing::AllOf;
using testing::HasSubstr;

VectorClock After(std::initializer_list<Point> points) {
  VectorClock clock;
  for (const Point& point : points) clock.Include(point);
  return clock;
}

// The first operation of stream 1, and one of stream 2 that may come after it.
struct Pair {
  const char* what;
  Access first;
  Access second;
  bool ordered;
  bool race;
};

TEST(RaceDetector, TwoOperationsRaceIfOneWritesWhatTheOtherTouchesAndNothingOrdersThem) {
  constexpr Access kRead{.begin = 100, .bytes = 10};
  constexpr Access kWrite{.begin = 100, .bytes = 10, .writes = true};
  for (const Pair& pair : {
           Pair{"read, read", kRead, kRead, false, false},
           Pair{"read, write", kRead, kWrite, false, true},
           Pair{"write, read", kWrite, kRead, false, true},
           Pair{"write, write", kWrite, kWrite, false, true},
           Pair{"ordered read, write", kRead, kWrite, true, false},
           Pair{"ordered write, read", kWrite, kRead, true, false},
           Pair{"ordered write, write", kWrite, kWrite, true, false},
           Pair{"last byte", kWrite, {.begin = 109, .bytes = 1}, false, true},
           Pair{"around", kRead, {.begin = 0, .bytes = 1000, .writes = true}, false, true},
           Pair{"just before", kWrite, {.begin = 90, .bytes = 10}, false, false},
           Pair{"just after", kWrite, {.begin = 110, .bytes = 10}, false, false},
           Pair{"no bytes", kWrite, {.begin = 105, .bytes = 0, .writes = true}, false, false},
       }) {
    SCOPED_TRACE(pair.what);
    RaceDetector detector;
    EXPECT_EQ(detector.Touch("first", {1, 1}, After({}), pair.first), std::nullopt);
    const VectorClock before = pair.ordered ? After({{1, 1}}) : After({});
    EXPECT_EQ(detector.Touch("second", {2, 1}, before, pair.second).has_value(), pair.race);
  }
}

TEST(RaceDetector, TheMessageNamesBothOperations) {
  RaceDetector detector;
  detector.Touch("the fold", {1, 7}, After({}), {.begin = 0, .bytes = 4, .writes = true});
  EXPECT_THAT(*detector.Touch("a copy", {2, 3}, After({}), {.begin = 0, .bytes = 4}),
              AllOf(HasSubstr("a copy (operation 3 of stream 2) reads"),
                    HasSubstr("the fold (operation 7 of stream 1) writes")));
}

TEST(RaceDetector, AWriterWaitsForEveryReader) {
  RaceDetector detector;
  const Access read{.begin = 0, .bytes = 64};
  const Access write{.begin = 0, .bytes = 64, .writes = true};
  detector.Touch("init", {0, 1}, After({}), write);
  detector.Touch("reader a", {1, 1}, After({{0, 1}}), read);
  detector.Touch("reader b", {2, 1}, After({{0, 1}}), read);
  EXPECT_THAT(*detector.Touch("writer", {3, 1}, After({{0, 1}, {1, 1}}), write),
              HasSubstr("reader b"));
}

TEST(RaceDetector, TracksPartsOfMemorySeparately) {
  RaceDetector detector;
  detector.Touch("left", {1, 1}, After({}), {.begin = 0, .bytes = 50, .writes = true});
  detector.Touch("right", {2, 1}, After({}), {.begin = 50, .bytes = 50, .writes = true});
  EXPECT_EQ(detector.Touch("reads left", {3, 1}, After({{1, 1}}), {.begin = 0, .bytes = 50}),
            std::nullopt);
  EXPECT_THAT(*detector.Touch("reads both", {3, 2}, After({{1, 1}}), {.begin = 40, .bytes = 20}),
              HasSubstr("right"));
}

TEST(RaceDetector, ForgetsFreedMemory) {
  RaceDetector detector;
  detector.Touch("first owner", {1, 1}, After({}), {.begin = 0, .bytes = 100, .writes = true});
  detector.Forget(20, 10);
  EXPECT_EQ(detector.Touch("next", {2, 1}, After({}), {.begin = 20, .bytes = 10, .writes = true}),
            std::nullopt);
  EXPECT_NE(detector.Touch("next to it", {2, 2}, After({}), {.begin = 30, .bytes = 1}),
            std::nullopt);
}

}  // namespace
}  // namespace pliant::fake_cuda
