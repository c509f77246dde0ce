#include "trainer/process/rank_launcher.h"

#include <map>
#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace pliant {
namespace {

std::map<std::string, std::string> Of(const std::vector<std::string>& given, int rank, int ranks) {
  std::map<std::string, std::string> variables;
  for (const std::string& text : EnvironmentOfRank(given, rank, ranks, 77, "/tmp/r")) {
    const std::size_t equals = text.find('=');
    EXPECT_TRUE(variables.emplace(text.substr(0, equals), text.substr(equals + 1)).second) << text;
  }
  return variables;
}

TEST(EnvironmentOfRank, TellsWhichRankItIs) {
  const auto first = Of({"HOME=/root", "PLIANT_LEARNER=a"}, 0, 2);
  const auto second = Of({"HOME=/root", "PLIANT_LEARNER=a"}, 1, 2);
  EXPECT_EQ(first.at("PLIANT_LOCAL_RANK"), "0");
  EXPECT_EQ(second.at("PLIANT_LOCAL_RANK"), "1");
  for (const auto& variables : {first, second}) {
    EXPECT_EQ(variables.at("PLIANT_NONCE"), "77") << "all ranks are one learner";
    EXPECT_EQ(variables.at("HOME"), "/root");
    EXPECT_EQ(variables.at("PLIANT_LEARNER"), "a");
    EXPECT_EQ(variables.at("PLIANT_SHARED_MEMORY_DIR"), "/tmp/r");
  }
  EXPECT_NE(first.at("PLIANT_TERMINATION_LOG"), second.at("PLIANT_TERMINATION_LOG"));
  EXPECT_EQ(Of({"PLIANT_SHARED_MEMORY_DIR=/host"}, 0, 2).at("PLIANT_SHARED_MEMORY_DIR"), "/host");
  EXPECT_NE(Of({"PLIANT_TERMINATION_LOG=/dev/termination-log"}, 0, 2).at("PLIANT_TERMINATION_LOG"),
            "/dev/termination-log")
      << "that file belongs to the whole learner";
}

TEST(EnvironmentOfRank, SharesOutTheGpus) {
  const struct {
    std::vector<std::string> given;
    std::vector<std::string> want;  // by rank
  } kCases[] = {
      {{}, {"0", "1"}},
      {{"CUDA_VISIBLE_DEVICES=4,7"}, {"4", "7"}},
      {{"CUDA_VISIBLE_DEVICES=GPU-a,GPU-b,GPU-c"}, {"GPU-a", "GPU-b"}},
      {{"CUDA_VISIBLE_DEVICES=3"}, {"3", "3"}},
      {{"CUDA_VISIBLE_DEVICES="}, {"", ""}},
  };
  for (const auto& c : kCases) {
    for (int rank = 0; rank < 2; ++rank) {
      EXPECT_EQ(Of(c.given, rank, 2).at("CUDA_VISIBLE_DEVICES"),
                c.want[static_cast<std::size_t>(rank)]);
    }
  }
}

TEST(RankExits, TheFirstThatFailsDecides) {
  const struct {
    std::vector<std::pair<int, int>> ends;  // rank, exit code
    std::vector<bool> stops_others;
    int decisive;
    int exit_code;
  } kCases[] = {
      {{{1, 0}, {0, 0}, {2, 0}}, {false, false, false}, 0, 0},
      {{{1, 2}, {0, 0}, {2, 0}}, {true, false, false}, 1, 2},
      {{{2, 137}, {0, 1}, {1, 0}}, {true, false, false}, 2, 137},
      {{{0, 0}, {1, 0}, {2, 1}}, {false, false, false}, 2, 1},
  };
  for (const auto& c : kCases) {
    RankExits fates(3);
    for (std::size_t i = 0; i < c.ends.size(); ++i) {
      EXPECT_FALSE(fates.all_ended());
      EXPECT_EQ(fates.OnEnd(c.ends[i].first, c.ends[i].second), c.stops_others[i]);
    }
    EXPECT_TRUE(fates.all_ended());
    EXPECT_EQ(fates.decisive_rank(), c.decisive);
    EXPECT_EQ(fates.exit_code(), c.exit_code);
  }
}

}  // namespace
}  // namespace pliant
