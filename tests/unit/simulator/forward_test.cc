#include "simulator/forward.h"

#include <sstream>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "operator/replay/debug_snapshot.h"
#include "simulator/ask_what_if.h"
#include "simulator/inputs/edits.h"
#include "tests/unit/planner/builders.h"
#include "tests/unit/simulator/two_queues.h"

namespace pliant::simulator {
namespace {

using testing::HasSubstr;

// Two jobs share 16 GPUs; a third one waits. The rest of two of them is known.
replay::DebugSnapshot AShare() {
  replay::DebugSnapshot debug = TwoQueuesShare("service");
  debug.snapshot.jobs[0].training.alone_seconds = 8000;
  debug.snapshot.jobs[1].training.alone_seconds = 80'000;
  return debug;
}

TEST(ForwardTest, JobsContinueWithTheLearnersThatTheyHave) {
  const RunInput input = PresentInput(AShare().snapshot);
  ASSERT_EQ(input.jobs.size(), 3U);
  EXPECT_EQ(input.jobs[0].view.learners.size(), 8U);
  EXPECT_LT(input.jobs[0].view.submitted, kBegin);
  const RunRecord run = RunEvents(input, {.max_time = 1'000'000'000});
  EXPECT_EQ(run.jobs[0].started, 0);
  EXPECT_EQ(run.jobs[0].completed, 1'000'000) << "8000 s on 8 learners";
  // It then gets the other GPUs: 8000 of its 80,000 s are done, and starts take 15 s.
  ASSERT_TRUE(run.jobs[1].completed);
  EXPECT_NEAR(static_cast<double>(*run.jobs[1].completed), 1'000'000 + 72'000'000 / 16, 20'000);
  EXPECT_FALSE(run.jobs[2].completed);
}

TEST(ForwardTest, WithAndWithoutChanges) {
  const replay::DebugSnapshot debug = AShare();
  const auto edited =
      Apply(debug.snapshot, ParseEdits(std::vector<std::string>{"nodes+=1x8"}).value());
  ASSERT_TRUE(edited) << edited.error();
  const auto changed = Forward(debug, *edited, WhatIfJobs::kChanged);
  ASSERT_TRUE(changed) << changed.error();
  EXPECT_THAT(*changed, HasSubstr("JOB             COMPLETES IN  WITH CHANGES  CHANGE\n"
                                  "team-a/nightly  16.7 min      12.2 min      -4.5 min\n"));
  EXPECT_THAT(*changed, Not(HasSubstr("service")));
  const auto all = Forward(debug, *edited, WhatIfJobs::kAll);
  EXPECT_THAT(*all, HasSubstr("team-a/service  -             -             -\n"));
  EXPECT_EQ(*Forward(debug, debug.snapshot, WhatIfJobs::kChanged), "no completion time changes\n");
}

TEST(AskWhatIfTest, AnswersAndRefuses) {
  replay::DebugSnapshot debug = AShare();
  const auto ask = [&](const WhatIfOptions& options) {
    std::istringstream in(replay::WriteSnapshot(debug));
    std::ostringstream out;
    std::ostringstream errors;
    const int code = AskWhatIf(options, in, out, errors);
    EXPECT_EQ(code, errors.str().empty() ? 0 : kBadInput);
    return out.str() + errors.str();
  };
  EXPECT_THAT(ask({.snapshot_file = "-"}), HasSubstr("no job changes"));
  EXPECT_THAT(ask({.snapshot_file = "-", .all_jobs = true}), HasSubstr("team-a/service"));
  EXPECT_THAT(ask({.snapshot_file = "-", .edits = {"nodes+=1x8"}, .forward = true}),
              HasSubstr("-4.5 min"));
  EXPECT_THAT(ask({.snapshot_file = "-", .edits = {"nodes=1"}}), HasSubstr("nodes=1"));
  EXPECT_THAT(ask({.snapshot_file = "-", .edits = {"nodes-=absent"}}), HasSubstr("absent"));
  EXPECT_EQ(ask({.snapshot_file = "/absent.json"}), "/absent.json: cannot be opened\n");
  debug.snapshot.jobs[0].training.alone_seconds.reset();
  debug.snapshot.jobs[1].training.alone_seconds.reset();
  EXPECT_THAT(ask({.snapshot_file = "-", .forward = true}),
              HasSubstr("standard input: no job has aloneSeconds"));
}

}  // namespace
}  // namespace pliant::simulator
