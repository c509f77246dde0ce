#include "trainer/protocol/catch_up_progress.h"

#include <vector>

#include <gtest/gtest.h>

namespace pliant {
namespace {

const std::vector<bool> kFirstAlone{true, false, false};

TEST(CatchUpProgress, NamesThoseWhoSaidSoUntilAllKnow) {
  CatchUpProgress progress(3, 10, 4);
  EXPECT_EQ(progress.NewlyInSync(kFirstAlone), std::vector<int>{});
  progress.OnTrailer(2, 11, /*in_sync=*/true);
  progress.OnTrailer(1, 11, /*in_sync=*/false);
  EXPECT_EQ(progress.NewlyInSync(kFirstAlone), std::vector<int>{2});
  EXPECT_EQ(progress.NewlyInSync(kFirstAlone), std::vector<int>{2}) << "until all know it";
  EXPECT_EQ(progress.NewlyInSync({true, false, true}), std::vector<int>{});
  progress.OnTrailer(1, 12, /*in_sync=*/true);
  EXPECT_EQ(progress.NewlyInSync(kFirstAlone), (std::vector<int>{1, 2}));
}

TEST(CatchUpProgress, AMemberInSyncStaysInSync) {
  CatchUpProgress progress(2, 10, 4);
  progress.OnTrailer(1, 11, /*in_sync=*/true);
  progress.OnTrailer(1, 12, /*in_sync=*/false);
  EXPECT_EQ(progress.NewlyInSync({true, false}), std::vector<int>{1});
}

TEST(CatchUpProgress, MembersInSyncMayBeAheadByTheBacklog) {
  const struct {
    const char* name;
    Tick heard;  // reported by rank 1; rank 2 reports nothing
    std::vector<bool> in_sync;
    Tick applied;
    bool want;
  } kCases[] = {
      {"at the beginning", 10, {true, false, true}, 10, false},
      {"as far as they may be", 10, {true, false, true}, 14, false},
      {"one more", 10, {true, false, true}, 15, true},
      {"it has come further", 12, {true, false, true}, 16, false},
      {"not far enough", 12, {true, false, true}, 17, true},
      {"a late report takes nothing back", 3, {true, false, true}, 14, false},
      {"no member is behind", 10, {true, true, true}, 99, false},
      {"one of two", 12, {true, false, false}, 15, true},
  };
  for (const auto& test : kCases) {
    SCOPED_TRACE(test.name);
    CatchUpProgress progress(3, 10, 4);
    progress.OnTrailer(1, test.heard, false);
    EXPECT_EQ(progress.IsAnyFarBehind(test.in_sync, test.applied), test.want);
  }
}

}  // namespace
}  // namespace pliant
