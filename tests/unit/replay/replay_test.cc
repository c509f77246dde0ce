#include "operator/replay/replay.h"

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/file.h"
#include "operator/replay/debug_snapshot.h"
#include "operator/replay/differences.h"
#include "tests/unit/planner/builders.h"

namespace pliant::replay {
namespace {

using planner::GpuNode;
using planner::JobOf;
using planner::kStart;
using planner::LearnerState;
using planner::Seconds;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::StartsWith;

// Two teams share 16 GPUs: batch has borrowed most of them when research, whose they are, submits a
// job.
DebugSnapshot ALoan() {
  planner::ClusterSnapshot snapshot{
      .now = kStart + Seconds{3600},
      .nodes = {GpuNode("gpu-1", 8), GpuNode("gpu-2", 8)},
      .queues = {{.name = "batch"}, {.name = "research", .guaranteed_gpus = 8}}};
  JobOf nightly = JobOf("nightly", 1, 16).Queue("batch").Has(8, "gpu-1").Has(6, "gpu-2");
  JobOf paper = JobOf("paper", 4, 8).Queue("research").Submitted(Seconds{3590});
  JobOf probe = JobOf("probe", 1, 1).Queue("research").Has(1, "gpu-2", LearnerState::kGated);
  for (const JobOf& job : {nightly, paper, probe}) snapshot.jobs.push_back(job.view);
  DebugSnapshot debug{.snapshot = snapshot};
  debug.plan = planner::MakePlan(snapshot, debug.policy);
  return debug;
}

struct Ran {
  int code = 0;
  std::string out;
  std::string errors;
};

Ran RunReplay(const ReplayOptions& options, const std::string& input) {
  std::istringstream in(input);
  std::ostringstream out;
  std::ostringstream errors;
  const int code = Replay(options, in, out, errors);
  return {code, out.str(), errors.str()};
}

TEST(Replay, MakesTheSamePlanAgain) {
  const DebugSnapshot debug = ALoan();
  const Ran ran = RunReplay({.snapshot_file = "-"}, WriteSnapshot(debug));
  EXPECT_EQ(ran.code, kSamePlan);
  EXPECT_EQ(ran.errors, "");
  EXPECT_THAT(ran.out, StartsWith("JOB             FROM  TO  ENTITLED GPUS  REASON"));
  EXPECT_THAT(ran.out, HasSubstr("team-a/paper       0   7"));
  EXPECT_THAT(ran.out, HasSubstr("QUEUE     POOL     DEMAND  ENTITLED"));
  EXPECT_THAT(ran.out, HasSubstr("default      2        16         16        0\n"));

  const Ran as_json = RunReplay({.snapshot_file = "-", .json = true}, WriteSnapshot(debug));
  EXPECT_EQ(as_json.code, kSamePlan);
  EXPECT_EQ(as_json.out, WritePlan(*ReadSnapshot(WriteSnapshot(debug))->plan));
}

// Gates are opened for jobs by their uids, which the file does not have.
TEST(Replay, MadeUpUidsChangeNothing) {
  const DebugSnapshot debug = ALoan();
  ASSERT_EQ(debug.plan->gates_open.size(), 1u);
  const auto read = ReadSnapshot(WriteSnapshot(debug));
  ASSERT_TRUE(read) << read.error();
  const planner::Plan again = planner::MakePlan(read->snapshot, read->policy);
  EXPECT_EQ(WritePlan(again), WritePlan(*debug.plan));
  EXPECT_EQ(again.gates_open.size(), 1u);
}

TEST(Replay, SaysWhatDiffers) {
  DebugSnapshot debug = ALoan();
  debug.plan->decisions[1].to = 3;
  debug.plan->queues[0].sentence = "by chance";
  debug.plan->again_at = kStart;
  debug.plan->gates_open.clear();
  debug.plan->pools.push_back({.pool = "a100"});
  const Ran ran = RunReplay({.snapshot_file = "-"}, WriteSnapshot(debug));
  EXPECT_EQ(ran.code, kOtherPlan);
  EXPECT_THAT(ran.errors, HasSubstr("decisions[team-a/paper].to: 3 in the file, 7 now\n"));
  EXPECT_THAT(ran.errors, HasSubstr("queues[batch].sentence: \"by chance\" in the file, \"8 GPUs"));
  EXPECT_THAT(ran.errors, HasSubstr("gatesOpen[team-a/probe/probe-0]: only now\n"));
  EXPECT_THAT(ran.errors, HasSubstr("pools[a100]: only in the file\n"));
  EXPECT_THAT(ran.errors, HasSubstr("againAt: 1795132800000 in the file, "));
}

TEST(Replay, TheOrderIsADifferenceToo) {
  planner::Plan plan = *ALoan().plan;
  const planner::Plan in_file = plan;
  EXPECT_THAT(Differences(in_file, plan), IsEmpty());
  std::swap(plan.queues[0], plan.queues[1]);
  EXPECT_THAT(Differences(in_file, plan), testing::ElementsAre("the same items in another order"));
}

TEST(Replay, AFileWithoutAPlanOnlyPrintsOne) {
  DebugSnapshot debug = ALoan();
  debug.plan.reset();
  const Ran ran = RunReplay({.snapshot_file = "-"}, WriteSnapshot(debug));
  EXPECT_EQ(ran.code, kSamePlan);
  EXPECT_EQ(ran.errors, "the file has no plan to compare with\n");
  EXPECT_THAT(ran.out, HasSubstr("team-a/paper"));
}

TEST(Replay, NamesWhatIsWrongWithAFile) {
  struct Case {
    std::string file;
    std::string input;
    std::string want;
  };
  const Case kCases[] = {
      {"-", "{", "standard input: not JSON, or nested more than 100 levels deep\n"},
      {"-", R"({"version": 1, "snapshot": {"pools": [{"reservedGpus": -1}]}})",
       "standard input: snapshot.pools[0].reservedGpus: not a whole number from 0 to 1000000\n"},
      {"/no/such/file", "", "/no/such/file: cannot be opened\n"},
      {"/", "", "/: "},
  };
  for (const Case& c : kCases) {
    const Ran ran = RunReplay({.snapshot_file = c.file}, c.input);
    EXPECT_EQ(ran.code, kBadInput) << c.input;
    EXPECT_THAT(ran.errors, StartsWith(c.want));
    EXPECT_EQ(ran.out, "");
  }
}

TEST(Replay, ControlCharactersOfNamesDoNotReachTheTerminal) {
  DebugSnapshot debug = ALoan();
  debug.snapshot.queues[0].name = "batch\x1b[2J\r";
  const Ran ran = RunReplay({.snapshot_file = "-"}, WriteSnapshot(debug));
  EXPECT_EQ(ran.code, kOtherPlan);
  EXPECT_THAT(ran.out + ran.errors, Not(HasSubstr("\x1b")));
  EXPECT_THAT(ran.out, HasSubstr("batch?[2J?"));
}

// Bug reports that were kept. After a change of the planner, and a look at what it changes, write
// the new plan into the file: tests/scenario/planner/README.md.
TEST(Replay, KeptReportsHaveThePlansOfThisPlanner) {
  int files = 0;
  for (const auto& file :
       std::filesystem::directory_iterator(PLIANT_SOURCE_DIR "/tests/scenario/planner/replay")) {
    SCOPED_TRACE(file.path());
    ++files;
    const Ran ran = RunReplay({.snapshot_file = file.path()}, "");
    EXPECT_EQ(ran.code, kSamePlan) << ran.errors << ran.out;
    EXPECT_EQ(ran.errors, "");
    const auto text = ReadFile(file.path());
    ASSERT_TRUE(text) << text.error();
    auto debug = ReadSnapshot(*text);
    ASSERT_TRUE(debug) << debug.error();
    debug->plan = planner::MakePlan(debug->snapshot, debug->policy);
    EXPECT_EQ(WriteSnapshot(*debug), *text);
  }
  EXPECT_GT(files, 0);
}

class DryRunTest : public testing::Test {
 protected:
  DryRunTest()
      : file_(std::filesystem::temp_directory_path() /
              ("pliant-job-" + std::to_string(::getpid()) + ".yaml")) {}
  ~DryRunTest() override { std::filesystem::remove(file_); }

  Ran Add(const std::string& yaml, bool as_json = false) {
    std::ofstream(file_) << yaml;
    Ran ran = RunReplay({.snapshot_file = "-", .job_file = file_, .json = as_json},
                        WriteSnapshot(ALoan()));
    if (ran.errors.starts_with(file_.string())) ran.errors.erase(0, file_.string().size());
    return ran;
  }

  // A job with 1 to 4 learners, each of one GPU.
  static std::string Job(const std::string& metadata, const std::string& spec,
                         const std::string& batch = "256") {
    return "apiVersion: pliant.dev/v1alpha1\nkind: ElasticTrainingJob\n" + metadata +
           "spec:\n  elastic: {minLearners: 1, maxLearners: 4}\n  training: {globalBatchSize: " +
           batch + "}\n  checkpoint: {volume: {hostPath: {path: /d}}}\n" + spec +
           "  template:\n    spec:\n      containers:\n        - name: learner\n"
           "          resources: {requests: {cpu: 500m, memory: 1Gi}}\n";
  }

 private:
  const std::filesystem::path file_;
};

TEST_F(DryRunTest, SaysWhatTheJobGetsAndWhoChanges) {
  const Ran ran = Add(Job("metadata: {name: digits, namespace: team-b}\n", "  queue: research\n"));
  EXPECT_EQ(ran.code, kSamePlan);
  EXPECT_THAT(ran.out, StartsWith("job team-b/digits in queue research of pool default gets 3 of 4 "
                                  "learners, 3 on gpu-2\n  FairShare: 3 of 16 GPUs: "));
  EXPECT_THAT(ran.out, HasSubstr("\nother jobs that change, in learners:\n"
                                 "JOB           NOW  WITHOUT  WITH  REASON\n"
                                 "team-a/paper    0        7     4  Minimum  4 of 16 GPUs: "));
  EXPECT_THAT(ran.out, Not(HasSubstr("nightly")));
}

TEST_F(DryRunTest, AJobThatWaitsMayChangeNobody) {
  const Ran ran = Add(Job("metadata: {name: digits}\n", "  queue: gone\n"));
  EXPECT_EQ(ran.code, kSamePlan);
  EXPECT_THAT(ran.out, HasSubstr(" gets 0 of 4 learners\n  QueueMissing: "));
  EXPECT_THAT(ran.out, HasSubstr("no other job changes\n"));
}

TEST_F(DryRunTest, MakesUpWhatTheApiServerWouldSet) {
  const Ran ran = Add(Job("", "  queue: batch\n"));
  EXPECT_EQ(ran.code, kSamePlan);
  EXPECT_THAT(ran.out, StartsWith("job default/new-job in queue batch of pool default gets "));
  EXPECT_THAT(ran.errors, StartsWith("not in the snapshot, so not considered: "));
}

TEST_F(DryRunTest, PrintsTheNewPlanAsJson) {
  const Ran ran = Add(Job("", ""), /*as_json=*/true);
  EXPECT_EQ(ran.code, kSamePlan);
  EXPECT_THAT(ran.out, StartsWith("{\n"));
  EXPECT_THAT(ran.out, HasSubstr("\"new-job\""));
}

TEST_F(DryRunTest, NamesWhatIsWrongWithTheJob) {
  struct Case {
    std::string yaml;
    std::string want;
  };
  const std::string nested(200, '[');
  const Case kCases[] = {
      {"", ": has no object of kind ElasticTrainingJob\n"},
      {"kind: Pod\n", ": has no object of kind ElasticTrainingJob\n"},
      {"{", ": yaml-cpp: error at line"},
      {"kind: ElasticTrainingJob\nspec: " + nested + std::string(200, ']') + "\n",
       ": nested more than 100 levels deep\n"},
      {"kind: ElasticTrainingJob\n", ": spec: missing\n"},
      {Job("", "  priority: 0\n"), ": spec.priority: not a whole number from 1 to 10000\n"},
      {Job("metadata: 7\n", ""), ": metadata: not an object\n"},
      {Job("metadata: {name: A_B}\n", ""), ": a job is NAMESPACE/NAME, both of lower-case"},
      {Job("", "", "250"), ": logicalShards 2 is less than maxLearners x gpusPerLearner = 4"},
      {Job("metadata: {name: paper, namespace: team-a}\n", ""),
       ": metadata.name: job team-a/paper is in the snapshot already; choose another\n"},
  };
  for (const Case& c : kCases) {
    const Ran ran = Add(c.yaml);
    EXPECT_EQ(ran.code, kBadInput) << c.yaml;
    EXPECT_THAT(ran.errors, StartsWith(c.want));
    EXPECT_EQ(ran.out, "");
  }
}

TEST(DryRun, WithoutASnapshotSaysHowToGetOne) {
  const Ran ran = RunReplay({.job_file = "job.yaml"}, "");
  EXPECT_EQ(ran.code, kBadInput);
  EXPECT_THAT(ran.errors, HasSubstr("port-forward"));
  EXPECT_THAT(ran.errors, HasSubstr("localhost:6060/debug/snapshot"));
  EXPECT_EQ(std::ranges::count(ran.errors, '\n'), 1);
}

}  // namespace
}  // namespace pliant::replay
