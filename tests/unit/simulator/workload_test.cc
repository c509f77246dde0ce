#include "simulator/model/workload.h"

#include <string>

#include <gtest/gtest.h>

#include "tests/unit/simulator/data_folder.h"
#include "tests/unit/simulator/small_profile.h"

namespace pliant::simulator {
namespace {

constexpr const char* kHeader = "name,time,application,num_replicas,batch_size\n";

TEST(ReadWorkloadTest, JobsAreInTheOrderOfSubmission) {
  const DataFolder folder;
  folder.Write("w.csv",
               std::string(kHeader) +
                   "late,9,small,1,8\nb,5,small,8,32\nfirst,0,small,2,16\na,5,small,1,9\n");
  const auto jobs = ReadWorkload(folder.path() / "w.csv", SmallProfiles());
  ASSERT_TRUE(jobs) << jobs.error();
  const std::vector<JobSpec> want = {
      {.name = "first", .submitted_seconds = 0, .gpus = 2, .batch = 16},
      {.name = "b", .submitted_seconds = 5, .gpus = 8, .batch = 32},
      {.name = "a", .submitted_seconds = 5, .gpus = 1, .batch = 9},
      {.name = "late", .submitted_seconds = 9, .gpus = 1, .batch = 8}};
  EXPECT_TRUE(*jobs == want);
}

struct BadWorkload {
  std::string content;
  std::string error;
};

TEST(ReadWorkloadTest, ErrorsNameTheLineAndTheRemedy) {
  const std::string header = kHeader;
  const BadWorkload kCases[] = {
      {"", ":1: there are no rows; add a header and at least one row"},
      {header, ":1: there are no rows; add a header and at least one row"},
      {"name,time,application,num_replicas\na,0,small,1\n",
       ":1: the column 'batch_size' is missing; add it"},
      {header + "a,0,small,1,12a\n",
       ":2: 'batch_size' is not a whole number: 12a; write one from 8 to 32"},
      {header + "a,0,small,1,8\nb,0,small,1,33\n",
       ":3: 'batch_size' is 33; write a whole number from 8 to 32"},
      {header + "a,0,small,1,7\n", ":2: 'batch_size' is 7; write a whole number from 8 to 32"},
      {header + "a,-1,small,1,8\n", ":2: 'time' is -1; write a whole number from 0 to 1000000000"},
      {header + "a,0,large,1,8\n",
       ":2: 'application' is large, which has no profile; use one of small"},
      {header + "a,0,small,0,8\n", ":2: 'num_replicas' is 0; write a whole number from 1 to 65536"},
      {header + "a,0,small,3,8\n",
       ":2: 'num_replicas' is 3: fewer than 4 of 8 samples for each; ask for at most 2"},
      {header + "a,0,small,1,8\na,1,small,1,8\n", ":3: an earlier job is named a; rename one"},
      {header + ",0,small,1,8\n",
       ":2: 'name' is not a name: (empty); write 1 to 255 letters, digits and -_."},
  };
  for (const BadWorkload& each : kCases) {
    const DataFolder folder;
    folder.Write("w.csv", each.content);
    const auto jobs = ReadWorkload(folder.path() / "w.csv", SmallProfiles());
    ASSERT_FALSE(jobs) << each.content;
    EXPECT_EQ(folder.WithoutFolder(jobs.error().message), "w.csv" + each.error);
  }
}

}  // namespace
}  // namespace pliant::simulator
