#include "operator/history/packed.h"

#include <cstdint>
#include <limits>
#include <string>

#include <gtest/gtest.h>

namespace pliant::history {
namespace {

TEST(PackedTest, EveryValueComesBack) {
  Texts texts;
  const Values values = {
      {Field::kStep, std::numeric_limits<std::int64_t>::max()},
      {Field::kEpoch, std::numeric_limits<std::int64_t>::min()},
      {Field::kGpus, std::int64_t{-1}},
      {Field::kQueue, std::string("team-a")},
      {Field::kLoss, 0.1},
      {Field::kSpeed, -std::numeric_limits<double>::denorm_min()},
      {Field::kReserved, std::int64_t{300}},
  };
  const Cells cells = ToCells(values, texts);
  const Cells back = Unpack(Pack(cells));
  ASSERT_EQ(back, cells);
  Values read;
  for (const Cell& cell : back) read[cell.field] = ToValue(cell, texts);
  EXPECT_EQ(read, values);
}

TEST(PackedTest, ASmallNumberTakesTwoBytesAndATextItsNumber) {
  EXPECT_EQ(Pack({{.field = Field::kGpus, .type = Cell::Type::kInteger, .bits = 8}}).size(), 2);
  EXPECT_EQ(Pack({{.field = Field::kQueue, .type = Cell::Type::kText, .bits = 1000}}).size(), 3);
  EXPECT_EQ(Pack({{.field = Field::kLoss}}).size(), 1);
}

TEST(PackedTest, ADifferenceTurnsOneIntoTheOther) {
  Texts texts;
  const Cells before = ToCells(
      {{Field::kQueue, std::string("a")}, {Field::kGpus, std::int64_t{1}}, {Field::kLoss, 0.5}},
      texts);
  const Cells after = ToCells({{Field::kPhase, std::string("Running")},
                               {Field::kGpus, std::int64_t{2}},
                               {Field::kLoss, 0.5}},
                              texts);
  const Cells changes = Difference(before, after);
  EXPECT_EQ(changes.size(), 3);  // the queue is absent, the phase and the GPUs are new
  EXPECT_EQ(Changed(before, changes), after);
  EXPECT_EQ(Changed({}, Difference({}, after)), after);
  EXPECT_EQ(Changed(before, Difference(before, {})), Cells());
  EXPECT_EQ(Difference(after, after), Cells());
}

TEST(TextsTest, ATextIsHeldOnceAndUntilItsLastUserLeaves) {
  Texts texts;
  const TextId first = texts.Use("FairShare");
  EXPECT_EQ(texts.Use("FairShare"), first);
  EXPECT_EQ(texts.size(), 1);
  const std::size_t bytes = texts.bytes();
  texts.UseAgain(first);
  texts.Release(first);
  texts.Release(first);
  EXPECT_EQ(texts.bytes(), bytes);
  EXPECT_EQ(texts.Of(first), "FairShare");
  texts.Release(first);
  EXPECT_EQ(texts.size(), 0);
  EXPECT_EQ(texts.bytes(), 0);
  EXPECT_EQ(texts.Use("Queued"), first) << "the number is free";
}

TEST(TextsTest, PinnedTextsAreCountedOnce) {
  Texts texts;
  const TextId first = texts.Use("FairShare");
  texts.Use("Queued");
  EXPECT_EQ(texts.pinned_bytes(), 0);
  texts.Pin(first);
  texts.Pin(first);
  EXPECT_EQ(texts.pinned_bytes(), Texts::CostOf("FairShare"));
  texts.Unpin(first);
  EXPECT_TRUE(texts.IsPinned(first));
  texts.Unpin(first);
  EXPECT_FALSE(texts.IsPinned(first));
  EXPECT_EQ(texts.pinned_bytes(), 0);
}

}  // namespace
}  // namespace pliant::history
