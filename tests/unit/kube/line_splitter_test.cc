#include "operator/kube/line_splitter.h"

#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace pliant::kube {
namespace {

using Outcome = LineSplitter::Outcome;
using testing::ElementsAre;

TEST(LineSplitter, CutsTheSameLinesWhereverPiecesEnd) {
  const std::string text = "one\n\ntwo \xC3\xA4\nthree";
  for (std::size_t size = 1; size <= text.size(); ++size) {
    std::vector<std::string> lines;
    const LineSink sink = [&](std::string_view line) {
      lines.emplace_back(line);
      return true;
    };
    LineSplitter splitter(sink, 100);
    for (std::size_t begin = 0; begin < text.size(); begin += size) {
      ASSERT_EQ(splitter.Feed(std::string_view(text).substr(begin, size)), Outcome::kMore);
    }
    EXPECT_THAT(lines, ElementsAre("one", "", "two \xC3\xA4")) << "pieces of " << size;
    EXPECT_EQ(splitter.Finish(), Outcome::kMore);
    EXPECT_THAT(lines, ElementsAre("one", "", "two \xC3\xA4", "three")) << "pieces of " << size;
  }
}

TEST(LineSplitter, StopsWhenTheSinkWantsNoMore) {
  int lines = 0;
  const LineSink sink = [&](std::string_view) { return ++lines < 2; };
  LineSplitter splitter(sink, 100);
  EXPECT_EQ(splitter.Feed("1\n2\n3\n"), Outcome::kStopped);
  EXPECT_EQ(lines, 2);
}

TEST(LineSplitter, LimitsALineInOnePieceAndInMany) {
  const LineSink sink = [](std::string_view) { return true; };
  EXPECT_EQ(LineSplitter(sink, 4).Feed("1234\n1234\n"), Outcome::kMore);
  EXPECT_EQ(LineSplitter(sink, 4).Feed("12345\n"), Outcome::kLineTooLong);
  LineSplitter splitter(sink, 4);
  EXPECT_EQ(splitter.Feed("123"), Outcome::kMore);
  EXPECT_EQ(splitter.Feed("45"), Outcome::kLineTooLong);
}

}  // namespace
}  // namespace pliant::kube
