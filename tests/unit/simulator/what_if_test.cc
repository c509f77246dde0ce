#include "simulator/inputs/what_if.h"

#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "operator/replay/debug_snapshot.h"
#include "simulator/inputs/edits.h"
#include "tests/unit/planner/builders.h"
#include "tests/unit/simulator/two_queues.h"

namespace pliant::simulator {
namespace {

replay::DebugSnapshot AShare() { return TwoQueuesShare("probe"); }

std::string WhatIfEdited(const std::vector<std::string>& texts,
                         WhatIfJobs jobs = WhatIfJobs::kChanged) {
  const replay::DebugSnapshot debug = AShare();
  const auto edits = ParseEdits(texts);
  const auto edited = Apply(debug.snapshot, *edits);
  return WhatIf(debug, *edited, jobs);
}

TEST(WhatIfTest, NothingChanges) {
  EXPECT_EQ(WhatIfEdited({}),
            "no job changes\n\n"
            "QUEUE     POOL     DEMAND  ENTITLED  ALLOCATED  RUNNING  WAITING\n"
            "batch     default      16         8          8        1        0\n"
            "research  default      16         8          8        1        0\n\n"
            "GPUs to share: 16\n");
}

TEST(WhatIfTest, JobsThatChange) {
  EXPECT_EQ(
      WhatIfEdited({"queue.research.weight=300"}),
      "JOB             QUEUE     PRIORITY  LEARNERS  REASON\n"
      "team-a/nightly  batch         5000  8 -> 5    Borrowed   5 of 16 GPUs: 1 GPU that "
      "others leave over, fair share 1/1 by priority 5000 of 5000 in queue batch, which is "
      "entitled to 4 GPUs\n"
      "team-a/paper    research      5000  8 -> 11   FairShare  11 of 16 GPUs: fair share 1/1 "
      "by priority 5000 of 5000 in queue research, which is entitled to 12 GPUs\n\n"
      "QUEUE     POOL     DEMAND  ENTITLED  ALLOCATED  RUNNING  WAITING\n"
      "batch     default      16  8 -> 4    8 -> 5           1        0\n"
      "research  default      16  8 -> 12   8 -> 11          1        0\n\n"
      "GPUs to share: 16\n");
}

TEST(WhatIfTest, AllJobs) {
  EXPECT_EQ(
      WhatIfEdited({"nodes+=1x4", "nodes+=1x4", "job.team-a/paper.priority=10000",
                    "job.team-a/paper.maxLearners=2"},
                   WhatIfJobs::kAll),
      "JOB             QUEUE     PRIORITY       LEARNERS  REASON\n"
      "team-a/nightly  batch     5000           8 -> 16   Maximum    16 of 24 GPUs: all that it "
      "asks for (maxLearners 16)\n"
      "team-a/paper    research  5000 -> 10000  8 -> 2    Maximum    2 of 24 GPUs: all that it "
      "asks for (maxLearners 2)\n"
      "team-a/probe    research  5000           0         Suspended  suspended by "
      "spec.suspend\n\n"
      "QUEUE     POOL     DEMAND   ENTITLED  ALLOCATED  RUNNING  WAITING\n"
      "batch     default  16       8 -> 16   8 -> 16          1        0\n"
      "research  default  16 -> 2  8 -> 2    8 -> 2           1        0\n\n"
      "GPUs to share: 16 -> 24\n");
}

}  // namespace
}  // namespace pliant::simulator
