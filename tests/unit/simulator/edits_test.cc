#include "simulator/inputs/edits.h"

#include <string>
#include <string_view>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/planner/builders.h"

namespace pliant::simulator {
namespace {

using planner::ClusterSnapshot;
using planner::GpuNode;
using planner::JobOf;
using planner::JobView;
using planner::NodeView;
using planner::QueueView;
using testing::ElementsAre;
using testing::IsEmpty;

ClusterSnapshot ACluster() {
  ClusterSnapshot snapshot{.now = planner::kStart,
                           .nodes = {GpuNode("gpu-1", 8), GpuNode("gpu-2", 8)},
                           .queues = {{.name = "batch"}, {.name = "research"}},
                           .pools = {{.name = "old"}}};
  snapshot.nodes[0].labels = {{"zone", "a"}, {planner::kHostnameLabel, "gpu-1"}};
  snapshot.nodes[1].schedulable = false;
  snapshot.jobs = {JobOf("resnet", 2, 8).Has(2, "gpu-1").Has(1, "gpu-2").view,
                   JobOf("a.b", 1, 1).view};
  return snapshot;
}

Result<ClusterSnapshot> Edited(const std::vector<std::string>& texts) {
  ASSIGN_OR_RETURN(const std::vector<Edit> edits, ParseEdits(texts));
  return Apply(ACluster(), edits);
}

TEST(EditsTest, ParseIntoValues) {
  const auto parsed = [](std::string_view text) { return ParseEdit(text)->change; };
  EXPECT_TRUE(parsed("queue.research.weight=300") ==
              decltype(Edit::change)(EditQueue{"research", WeightChange{300}}));
  EXPECT_TRUE(parsed("queue.research.limit=none") ==
              decltype(Edit::change)(EditQueue{"research", LimitChange{}}));
  EXPECT_TRUE(parsed("job.team-a/a.b.maxLearners=16") ==
              decltype(Edit::change)(EditJob{{"team-a", "a.b"}, MaxLearnersChange{16}}));
  EXPECT_TRUE(parsed("nodes+=2x8@old") ==
              decltype(Edit::change)(
                  AddNodes{.group = {.count = 2, .gpus = 8, .labels = {}}, .pool = "old"}));
  EXPECT_TRUE(parsed("nodes-=gpu-1") == decltype(Edit::change)(RemoveNode{"gpu-1"}));
}

TEST(EditsTest, ChangeQueues) {
  const auto edited =
      Edited({"queue.research.weight=300", "queue.research.guaranteed=16",
              "queue.research.limit=32", "queue.research.lendingLimit=4",
              "queue.research.policy=Throughput", "queue.research.bias=ShortJobs",
              "queue.research.stop=Drain", "queue.batch.limit=8", "queue.batch.limit=none"});
  ASSERT_TRUE(edited) << edited.error();
  const QueueView research{.name = "research",
                           .weight = 300,
                           .guaranteed_gpus = 16,
                           .limit_gpus = 32,
                           .lending_limit_gpus = 4,
                           .policy = planner::QueuePolicy::kThroughput,
                           .stop = planner::QueueStop::kDrain,
                           .favors_short_jobs = true};
  EXPECT_THAT(edited->queues, ElementsAre(QueueView{.name = "batch"}, research));
}

TEST(EditsTest, TheBuiltInQueueIsCreated) {
  const auto edited = Edited({"queue.default.policy=Throughput", "queue.default.weight=7"});
  ASSERT_TRUE(edited) << edited.error();
  const QueueView want{.weight = 7, .policy = planner::QueuePolicy::kThroughput};
  EXPECT_THAT(edited->queues,
              ElementsAre(QueueView{.name = "batch"}, QueueView{.name = "research"}, want));
}

TEST(EditsTest, ChangeJobs) {
  // Only the result has to be sound, whatever the order of the edits.
  const auto edited = Edited({"job.team-a/resnet.priority=10000", "job.team-a/resnet.minLearners=9",
                              "job.team-a/resnet.maxLearners=16", "job.team-a/a.b.suspended=true"});
  ASSERT_TRUE(edited) << edited.error();
  ClusterSnapshot want = ACluster();
  want.jobs[0].priority = 10000;
  want.jobs[0].min_learners = 9;
  want.jobs[0].max_learners = 16;
  want.jobs[1].suspended = true;
  EXPECT_TRUE(*edited == want);
}

TEST(EditsTest, NewNodesAreLikeTheFirstOfTheirPool) {
  const auto edited = Edited({"nodes+=2x16", "nodes+=1x4", "nodes+=1x2@old"});
  ASSERT_TRUE(edited) << edited.error();
  ASSERT_EQ(edited->nodes.size(), 6u);
  const auto want = [](const std::string& name, std::int64_t gpus) {
    NodeView node = GpuNode(name, gpus);
    node.labels = {{"zone", "a"}, {planner::kHostnameLabel, name}};
    return node;
  };
  EXPECT_EQ(edited->nodes[2], want("new-1", 16));
  EXPECT_EQ(edited->nodes[3], want("new-2", 16));
  EXPECT_EQ(edited->nodes[4], want("new-3", 4));
  const NodeView& old = edited->nodes[5];
  EXPECT_EQ(old.pool, "old");
  EXPECT_EQ(old.allocatable.gpus, 2);
  EXPECT_GE(old.allocatable.cpu_millis, 1'000'000);
}

TEST(EditsTest, ARemovedNodeTakesItsLearnersAlong) {
  const auto edited = Edited({"nodes-=gpu-1"});
  ASSERT_TRUE(edited) << edited.error();
  ASSERT_EQ(edited->nodes.size(), 1u);
  EXPECT_EQ(edited->nodes[0].name, "gpu-2");
  const JobView& job = edited->jobs[0];
  ASSERT_EQ(job.learners.size(), 1u);
  EXPECT_EQ(job.learners[0].node, "gpu-2");
  EXPECT_EQ(job.share.desired, 3);
  const auto both = Edited({"nodes-=gpu-1", "nodes-=gpu-2"});
  ASSERT_TRUE(both) << both.error();
  EXPECT_THAT(both->jobs[0].learners, IsEmpty());
}

struct BadEdit {
  std::vector<std::string> edits;
  std::string error;
};

TEST(EditsTest, ErrorsNameTheEditAndWhatThereIs) {
  const std::string forms =
      "write one of queue.NAME.FIELD=VALUE, job.NAMESPACE/NAME.FIELD=VALUE, nodes+=COUNTxGPUS, "
      "nodes+=COUNTxGPUS@POOL or nodes-=NAME";
  const BadEdit kCases[] = {
      {{""}, "edit '': " + forms},
      {{"weight=3"}, "edit 'weight=3': " + forms},
      {{"queue.research=3"}, "edit 'queue.research=3': " + forms},
      {{"queue.research.weight"}, "edit 'queue.research.weight': " + forms},
      {{"queue..weight=3"}, "edit 'queue..weight=3': " + forms},
      {{"queue.weight=3"}, "edit 'queue.weight=3': " + forms},
      {{"queue.resarch.weight=3"},
       "edit 'queue.resarch.weight=3': there is no queue 'resarch'; queues: batch, default, "
       "research"},
      {{"queue.research.wight=3"},
       "edit 'queue.research.wight=3': there is no field wight; use one of weight, guaranteed, "
       "limit, lendingLimit, policy, bias, stop"},
      {{"queue.research.weight=0"},
       "edit 'queue.research.weight=0': weight is 0; write a whole number from 1 to 10000"},
      {{"queue.research.limit=all"},
       "edit 'queue.research.limit=all': limit is all; write a whole number from 0 to 1000000, or "
       "none"},
      {{"queue.research.policy=Fair"},
       "edit 'queue.research.policy=Fair': policy is Fair; write one of FairShare, Priority, Fifo, "
       "Throughput"},
      {{"queue.research.limit=4", "queue.research.guaranteed=5"},
       "edit 'queue.research.limit=4': guaranteed is 5, more than limit, which is 4; lower "
       "guaranteed, or raise limit"},
      {{"job.resnet.priority=1"}, "edit 'job.resnet.priority=1': a job is NAMESPACE/NAME"},
      {{"job.team-a/vgg.priority=1"},
       "edit 'job.team-a/vgg.priority=1': there is no job 'team-a/vgg'; jobs: team-a/a.b, "
       "team-a/resnet"},
      {{"job.team-a/resnet.prio=1"},
       "edit 'job.team-a/resnet.prio=1': there is no field prio; use one of priority, "
       "minLearners, maxLearners, suspended"},
      {{"job.team-a/resnet.suspended=yes"},
       "edit 'job.team-a/resnet.suspended=yes': suspended is yes; write true or false"},
      {{"job.team-a/resnet.maxLearners=1"},
       "edit 'job.team-a/resnet.maxLearners=1': minLearners is 2, more than maxLearners, which is "
       "1; edit both"},
      {{"job.team-a/resnet.maxLearners=1025"},
       "edit 'job.team-a/resnet.maxLearners=1025': maxLearners is 1025; write a whole number from "
       "1 to 1024"},
      {{"nodes+=2"},
       "edit 'nodes+=2': the group of nodes is 2; write 1 to 100000 nodes, x, and 1 "
       "to 1024 GPUs of each, for example 2x8"},
      {{"nodes+=2x8@new"}, "edit 'nodes+=2x8@new': there is no pool 'new'; pools: default, old"},
      {{"nodes+=99999x8"},
       "edit 'nodes+=99999x8': there would be 100001 nodes; at most 100000 are supported"},
      {{"nodes-=gpu-3"}, "edit 'nodes-=gpu-3': there is no node 'gpu-3'; nodes: gpu-1, gpu-2"},
      {{"nodes-=gpu-1", "nodes-=gpu-1"},
       "edit 'nodes-=gpu-1': there is no node 'gpu-1'; nodes: gpu-2"},
      {{"nodes-=\x1b[2J"}, "edit 'nodes-=?[2J': there is no node '?[2J'; nodes: gpu-1, gpu-2"},
  };
  for (const BadEdit& each : kCases) {
    const auto edited = Edited(each.edits);
    ASSERT_FALSE(edited) << each.error;
    EXPECT_EQ(edited.error().message, each.error);
  }
}

TEST(EditsTest, LongListsAreCut) {
  const auto edited = Edited({"nodes+=20x8", "nodes-=n"});
  ASSERT_FALSE(edited);
  EXPECT_EQ(edited.error().message,
            "edit 'nodes-=n': there is no node 'n'; nodes: gpu-1, gpu-2, new-1, new-10, new-11, "
            "new-12, new-13, new-14, new-15, new-16 and 12 more");
}

}  // namespace
}  // namespace pliant::simulator
