#include "operator/replay/debug_snapshot.h"

#include <nlohmann/json.hpp>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "operator/replay/enumerators.h"
#include "tests/unit/replay/every_field.h"

namespace pliant::replay {
namespace {

using nlohmann::json;
using testing::HasSubstr;
using testing::Not;

TEST(DebugSnapshot, EachFieldIsWrittenAndRead) {
  const DebugSnapshot full = EveryField();
  const std::string text = WriteSnapshot(full);
  const auto read = ReadSnapshot(text);
  ASSERT_TRUE(read) << read.error();
  EXPECT_EQ(*read, full);
  EXPECT_EQ(WriteSnapshot(*read), text);

  int leaves = 0;
  DebugSnapshot counted = full;
  ForEachLeaf(counted, /*fill=*/false, [&](auto&) { ++leaves; });
  EXPECT_GT(leaves, 200);
  for (int changed = 0; changed < leaves; ++changed) {
    DebugSnapshot other = full;
    int index = 0;
    ForEachLeaf(other, /*fill=*/false, [&](auto& leaf) {
      if (index++ == changed) Change(leaf);
    });
    const std::string other_text = WriteSnapshot(other);
    ASSERT_NE(other_text, text) << "a field is not written: leaf " << changed;
    const auto other_read = ReadSnapshot(other_text);
    ASSERT_TRUE(other_read) << other_read.error();
    ASSERT_EQ(*other_read, other) << "a field is not read: leaf " << changed;
  }
}

TEST(DebugSnapshot, AbsentFieldsHaveTheirDefaults) {
  const DebugSnapshot empty{.plan = planner::Plan{}};
  EXPECT_EQ(ReadSnapshot(WriteSnapshot(empty)), empty);
  EXPECT_EQ(ReadSnapshot(R"({"version": 1, "snapshot": {}})"), DebugSnapshot{});
  const auto short_one = ReadSnapshot(R"({"version": 1, "snapshot": {
      "nodes": [{"name": "n"}], "queues": [{"name": "q"}], "pools": [{"name": "p"}],
      "jobs": [{"namespace": "a", "name": "b", "needs": {"resources": {"gpus": 1}},
                "learners": [{}], "cap": {}}]}})");
  ASSERT_TRUE(short_one) << short_one.error();
  const planner::ClusterSnapshot want{.nodes = {{.name = "n"}},
                                      .jobs = {{.key = {"a", "b", "a/b"},
                                                .needs = {.resources = {.gpus = 1}},
                                                .learners = {planner::LearnerView{}},
                                                .cap = planner::DemandCap{}}},
                                      .queues = {{.name = "q"}},
                                      .pools = {{.name = "p"}}};
  EXPECT_EQ(short_one->snapshot, want);
}

TEST(DebugSnapshot, HasNoUidsOfJobs) {
  DebugSnapshot debug{.plan = planner::Plan{}};
  const planner::JobKey key{"team-a", "resnet", "0b5e5a4c"};
  debug.snapshot.jobs = {{.key = key, .needs = {.resources = {.gpus = 1}}}};
  debug.plan->decisions = {{.job = key}};
  debug.plan->gates_open = {{.job = key}};
  const std::string text = WriteSnapshot(debug);
  EXPECT_THAT(text, Not(HasSubstr(key.uid))) << "only readers of the job may see it";
  const auto read = ReadSnapshot(text);
  ASSERT_TRUE(read) << read.error();
  const planner::JobKey want{"team-a", "resnet", "team-a/resnet"};
  EXPECT_EQ(read->snapshot.jobs[0].key, want);
  EXPECT_EQ(read->plan->decisions[0].job, want);
  EXPECT_EQ(read->plan->gates_open[0].job, want);
}

// All values of an enumeration have names of their own, and kLast is the last one.
template <typename Enum>
void ExpectNames() {
  std::set<std::string_view> names;
  for (int each = 0; each <= static_cast<int>(kLast<Enum>); ++each) {
    names.insert(ToString(static_cast<Enum>(each)));
  }
  EXPECT_EQ(names.size(), static_cast<std::size_t>(kLast<Enum>) + 1);
  EXPECT_FALSE(names.contains("Unknown"));
  EXPECT_EQ(ToString(static_cast<Enum>(static_cast<int>(kLast<Enum>) + 1)), "Unknown");
}

TEST(DebugSnapshot, EachEnumeratorHasAName) {
  ExpectNames<planner::NodeOperator>();
  ExpectNames<planner::LearnerState>();
  ExpectNames<planner::Reproducibility>();
  ExpectNames<planner::QueuePolicy>();
  ExpectNames<planner::QueueStop>();
  ExpectNames<planner::ReasonCode>();
  ExpectNames<planner::QueueState>();
}

TEST(ReadSnapshot, NamesTheFieldThatIsWrong) {
  struct Case {
    std::string at;  // a JSON pointer into a snapshot with all fields
    json value;
    std::string want;
  };
  const json large = INT64_MAX;
  const Case kCases[] = {
      {"/version", 2, "version: 2; this operator reads only 1: use the operator that wrote it"},
      {"/version", nullptr, "version: missing; this operator reads only 1"},
      {"/version", "1", "version: not a whole number"},
      {"/snapshot", nullptr, "snapshot: missing"},
      {"/snapshot", 7, "snapshot: not an object"},
      {"/snapshot/now", -1, "snapshot.now: not a whole number from 0 to 253402300799999"},
      {"/snapshot/now", "noon", "snapshot.now: not a whole number"},
      {"/snapshot/now", 1.5, "snapshot.now: not a whole number"},
      {"/snapshot/nodes", 1, "snapshot.nodes: not a list of at most"},
      {"/snapshot/nodes/1", 1, "snapshot.nodes[1]: not an object"},
      {"/snapshot/nodes/1/ready", 1, "snapshot.nodes[1].ready: neither true nor false"},
      {"/snapshot/nodes/1/labels", json::array(), "snapshot.nodes[1].labels: not an object of"},
      {"/snapshot/nodes/0/allocatable/gpus", large,
       "snapshot.nodes[0].allocatable.gpus: not a whole number from 0 to 1000000"},
      {"/snapshot/nodes/0/foreign/cpuMillis", -1, "snapshot.nodes[0].foreign.cpuMillis: not"},
      {"/snapshot/jobs/0/name", nullptr, "snapshot.jobs[0].name: missing"},
      {"/snapshot/jobs/0/name", "a/b", "snapshot.jobs[0].name: contains a slash"},
      {"/snapshot/jobs/0/priority", 0, "snapshot.jobs[0].priority: not a whole number from 1"},
      {"/snapshot/jobs/0/maxLearners", 1025, "snapshot.jobs[0].maxLearners: not"},
      {"/snapshot/jobs/0/minLearners", 1024,
       "snapshot.jobs[0].minLearners: 1024 is more than maxLearners"},
      {"/snapshot/jobs/1/training/logicalShards", 0,
       "snapshot.jobs[1].training.logicalShards: not"},
      {"/snapshot/jobs/1/needs", nullptr, "snapshot.jobs[1].needs.resources.gpus: missing"},
      {"/snapshot/jobs/1/needs/resources/gpus", nullptr,
       "snapshot.jobs[1].needs.resources.gpus: missing"},
      {"/snapshot/jobs/1/needs/resources/gpus", 0,
       "snapshot.jobs[1].needs.resources.gpus: not a whole number from 1 to 16"},
      {"/snapshot/jobs/1/needs/nodeAffinity/0/matchExpressions/1/operator", "Is",
       "snapshot.jobs[1].needs.nodeAffinity[0].matchExpressions[1].operator: none of In, NotIn"},
      {"/snapshot/jobs/1/waiting/attainedGpuSeconds", large,
       "snapshot.jobs[1].waiting.attainedGpuSeconds: not"},
      {"/snapshot/jobs/1/learners/0/state", "Done",
       "snapshot.jobs[1].learners[0].state: none of Gated, Starting, Running, Leaving"},
      {"/snapshot/jobs/1/cap/strikes", large, "snapshot.jobs[1].cap.strikes: not"},
      {"/snapshot/queues/0/weight", 0, "snapshot.queues[0].weight: not a whole number from 1"},
      {"/snapshot/queues/0/halfLifeSeconds", 59, "snapshot.queues[0].halfLifeSeconds: not"},
      {"/snapshot/queues/0/limitGpus", -1, "snapshot.queues[0].limitGpus: not"},
      {"/policy/firstCapSeconds", 0, "policy.firstCapSeconds: not a whole number from 1"},
      {"/policy/reserveForSeconds", 0, "policy.reserveForSeconds: not"},
      {"/plan/decisions/0/reason/code", "Luck", "plan.decisions[0].reason.code: none of FairShare"},
      {"/plan/decisions/0/keep/1", 1, "plan.decisions[0].keep: not a list of at most"},
      {"/plan/queues/1/state", 1, "plan.queues[1].state: not a string"},
  };
  const json full = json::parse(WriteSnapshot(EveryField()));
  for (const Case& c : kCases) {
    SCOPED_TRACE(c.at + " = " + c.value.dump());
    json wrong = full;
    ASSERT_TRUE(wrong.contains(json::json_pointer(c.at)));
    wrong[json::json_pointer(c.at)] = c.value;
    const auto read = ReadSnapshot(wrong.dump());
    ASSERT_FALSE(read);
    EXPECT_EQ(read.error().code, ErrorCode::kInvalid);
    EXPECT_THAT(read.error().message, HasSubstr(c.want));
  }
}

TEST(ReadSnapshot, RefusesAnItemThatIsThereTwice) {
  for (const char* list : {"nodes", "jobs", "budgets", "queues", "pools"}) {
    json twice = json::parse(WriteSnapshot(EveryField()));
    twice["snapshot"][list][1] = twice["snapshot"][list][0];
    const auto read = ReadSnapshot(twice.dump());
    ASSERT_FALSE(read) << list;
    EXPECT_EQ(read.error().message, "snapshot." + std::string(list) + "[1]: is in the list twice");
  }
}

TEST(ReadSnapshot, RefusesTextsThatAreNoSnapshot) {
  const std::string deep(1'000'000, '[');
  for (const std::string& text :
       {std::string(), std::string("{"), std::string("[]"), std::string("null"),
        std::string("\xff"), deep, R"({"version": 1, "snapshot": )" + deep}) {
    EXPECT_FALSE(ReadSnapshot(text)) << text.substr(0, 40);
  }
  const auto too_large = ReadSnapshot(std::string(kMaxSnapshotBytes + 1, ' '));
  ASSERT_FALSE(too_large);
  EXPECT_EQ(too_large.error().message, "larger than 256 MiB");
}

}  // namespace
}  // namespace pliant::replay
