#include "operator/controller/rounds/snapshot_builder.h"

#include <cmath>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "base/format.h"
#include "operator/controller/lifecycle/job_lifecycle.h"
#include "tests/unit/controller/job_fixture.h"

namespace pliant::controller {
namespace {

std::shared_ptr<const api::Node> GpuNode(const std::string& name, std::int64_t gpus) {
  api::Node node{.ready = true,
                 .taints = {{.key = "gpu", .effect = "NoSchedule"}},
                 .allocatable = {.gpus = gpus, .cpu_millis = 8000, .memory_bytes = 1000}};
  node.meta.name = name;
  return std::make_shared<const api::Node>(std::move(node));
}

std::shared_ptr<const api::Pod> Foreign(const std::string& name,
                                        const std::function<void(api::Pod&)>& change) {
  api::Pod pod;
  pod.meta.name = name;
  pod.meta.uid = name;
  pod.requests = {.gpus = 1, .cpu_millis = 100, .memory_bytes = 10};
  change(pod);
  return std::make_shared<const api::Pod>(std::move(pod));
}

planner::ClusterSnapshot Build(const std::vector<std::shared_ptr<const api::Node>>& nodes,
                               const std::vector<std::shared_ptr<const api::Pod>>& pods,
                               const std::vector<const JobView*>& jobs, WallTime now) {
  const QueueBook book;
  SnapshotBuilder builder(book, "pliant");
  for (const auto& node : nodes) builder.SeeNode({{"", node->meta.name}, nullptr, node});
  for (const auto& pod : pods) builder.SeePod({{"", pod->meta.name}, nullptr, pod});
  for (const JobView* job : jobs) {
    builder.SeeJob({job->job->meta.name_space, job->job->meta.name}, job);
  }
  return builder.Build(now);
}

TEST(SnapshotBuilder, OtherPeoplesPodsTakeRoomWhereTheyAreOrArePromised) {
  const std::vector<std::shared_ptr<const api::Pod>> pods = {
      Foreign("bound", [](api::Pod& pod) { pod.node_name = "gpu-1"; }),
      Foreign("nominated", [](api::Pod& pod) { pod.nominated_node_name = "gpu-1"; }),
      Foreign("daemon",
              [](api::Pod& pod) {
                pod.meta.created = At(4);
                pod.planned_node = "gpu-1";
                pod.of_daemon_set = true;
              }),
      // Anyone may create a DaemonSet that fits no node.
      Foreign("refused",
              [](api::Pod& pod) {
                pod.planned_node = "gpu-1";
                pod.of_daemon_set = true;
                pod.unschedulable = true;
              }),
      // Anyone may create a pod that names a node without room; it uses nothing.
      Foreign("pinned", [](api::Pod& pod) { pod.planned_node = "gpu-1"; }),
      Foreign("leaving",
              [](api::Pod& pod) {
                pod.node_name = "gpu-1";
                pod.meta.deleted = At(1);
              }),
      Foreign("ended",
              [](api::Pod& pod) {
                pod.node_name = "gpu-1";
                pod.phase = api::PodPhase::kSucceeded;
              }),
      Foreign("gated",
              [](api::Pod& pod) {
                pod.planned_node = "gpu-1";
                pod.scheduling_gates = {"x"};
              }),
      Foreign("unscheduled", [](api::Pod&) {}),
      Foreign("elsewhere", [](api::Pod& pod) { pod.node_name = "cpu-1"; }),
  };
  const auto snapshot = Build({GpuNode("gpu-1", 8), GpuNode("cpu-1", 0)}, pods, {}, At(5));
  ASSERT_EQ(snapshot.nodes.size(), 1u) << "nodes without GPUs are left out";
  EXPECT_EQ(snapshot.nodes[0].foreign,
            (planner::Resources{.gpus = 4, .cpu_millis = 400, .memory_bytes = 40}));
  EXPECT_EQ(snapshot.nodes[0].allocatable.gpus, 8);
  EXPECT_EQ(snapshot.now, At(5));
}

// A pod of a DaemonSet, pinned to the node, that the scheduler has not judged.
std::shared_ptr<const api::Pod> Daemon(const std::function<void(api::Pod&)>& change = {}) {
  return Foreign("daemon", [&](api::Pod& pod) {
    pod.meta.created = At(0);
    pod.planned_node = "gpu-1";
    pod.of_daemon_set = true;
    if (change) change(pod);
  });
}

TEST(SnapshotBuilder, APodThatNobodyJudgesTakesRoomForAMinute) {
  const QueueBook book;
  SnapshotBuilder builder(book, "pliant");
  builder.SeeNode({{"", "gpu-1"}, nullptr, GpuNode("gpu-1", 8)});
  const auto daemon = Daemon();
  builder.SeePod({{"b", "daemon"}, nullptr, daemon});
  EXPECT_EQ(builder.Build(At(59)).nodes[0].foreign.gpus, 1);
  EXPECT_EQ(builder.again_at(), At(60)) << "no event announces it";
  EXPECT_EQ(builder.Build(At(60)).nodes[0].foreign, planner::Resources{});
  EXPECT_EQ(builder.again_at(), std::nullopt);
  const auto bound = Daemon([](api::Pod& pod) { pod.node_name = "gpu-1"; });
  builder.SeePod({{"b", "daemon"}, daemon, bound});
  EXPECT_EQ(builder.Build(At(61)).nodes[0].foreign.gpus, 1);
  builder.SeePod({{"b", "daemon"}, bound, nullptr});
  EXPECT_EQ(builder.Build(At(62)).nodes[0].foreign, planner::Resources{});
}

// The same with a pod that says that it is a learner.
TEST(SnapshotBuilder, ALabelDoesNotExtendThatMinute) {
  const auto labelled = Daemon([](api::Pod& pod) {
    pod.of_daemon_set = false;
    pod.meta.labels[std::string(kLabelJobUid)] = pod.meta.owner_uid = "gone";
  });
  EXPECT_EQ(Build({GpuNode("gpu-1", 8)}, {labelled}, {}, At(59)).nodes[0].foreign.gpus, 1);
  EXPECT_EQ(Build({GpuNode("gpu-1", 8)}, {labelled}, {}, At(60)).nodes[0].foreign.gpus, 0);
}

TEST(SnapshotBuilder, APodThatCannotFitTakesNoRoomNotEvenForAMoment) {
  const auto large = Daemon([](api::Pod& pod) { pod.requests.cpu_millis = 8001; });
  EXPECT_EQ(Build({GpuNode("gpu-1", 8)}, {large}, {}, At(1)).nodes[0].foreign,
            planner::Resources{});
  const auto fits = Daemon([](api::Pod& pod) { pod.requests.cpu_millis = 8000; });
  EXPECT_EQ(Build({GpuNode("gpu-1", 8)}, {fits}, {}, At(1)).nodes[0].foreign.cpu_millis, 8000);
}

TEST(SnapshotBuilder, FindsTheLargestForeignUsersOfANode) {
  const QueueBook book;
  SnapshotBuilder builder(book, "pliant");
  builder.SeeNode({{"", "gpu-1"}, nullptr, GpuNode("gpu-1", 8)});
  const auto see = [&](const char* ns, const char* name, const api::Resources& requests) {
    builder.SeePod({{ns, name}, nullptr, Foreign(name, [&](api::Pod& pod) {
                      pod.node_name = "gpu-1";
                      pod.requests = requests;
                    })});
  };
  EXPECT_EQ(builder.Build(At(1)).nodes[0].foreign_users, planner::ForeignUsers{});
  see("a", "one", {.cpu_millis = 100, .memory_bytes = 90});
  see("b", "two", {.cpu_millis = 60, .memory_bytes = 10});
  see("b", "three", {.cpu_millis = 60});
  EXPECT_EQ(builder.Build(At(2)).nodes[0].foreign_users,
            (planner::ForeignUsers{.gpus = "", .cpu = "b", .memory = "a"}));
}

// Sums are capped. When a summand is removed again, the cap must not be the base.
TEST(SnapshotBuilder, APodOfAnyGreatRequestLeavesNoTrace) {
  const auto four = Foreign("four", [](api::Pod& pod) {
    pod.node_name = "gpu-1";
    pod.requests.gpus = 4;
  });
  const auto all = Foreign("all", [](api::Pod& pod) {
    pod.node_name = "gpu-1";
    pod.requests = {.gpus = INT64_MAX, .cpu_millis = INT64_MAX, .memory_bytes = INT64_MAX};
  });
  const QueueBook book;
  SnapshotBuilder builder(book, "pliant");
  builder.SeeNode({{"", "gpu-1"}, nullptr, GpuNode("gpu-1", 8)});
  builder.SeePod({{"a", "four"}, nullptr, four});
  builder.SeePod({{"b", "all"}, nullptr, all});
  EXPECT_EQ(builder.Build(At(1)).nodes[0].foreign.gpus, INT64_MAX);
  builder.SeePod({{"b", "all"}, all, nullptr});
  EXPECT_EQ(builder.Build(At(2)).nodes[0].foreign,
            (planner::Resources{.gpus = 4, .cpu_millis = 100, .memory_bytes = 10}));
}

TEST(SnapshotBuilder, ANamespacesJobsMayHoldWhatItsQuotasLeaveThem) {
  const auto quota = [](const char* name, std::optional<std::int64_t> gpus) {
    api::ResourceQuota made{.gpus = gpus};
    made.meta.name = name;
    return std::make_shared<const api::ResourceQuota>(made);
  };
  const auto pod = [](std::int64_t gpus, const std::function<void(api::Pod&)>& change) {
    return Foreign("p", [&](api::Pod& made) {
      made.requests.gpus = gpus;
      change(made);
    });
  };
  JobView view = TrainingView(2);
  const QueueBook book;
  SnapshotBuilder builder(book, "pliant");
  builder.SeeQuota({{"team-a", "large"}, nullptr, quota("large", 100)});
  builder.SeeQuota({{"team-a", "small"}, nullptr, quota("small", 10)});
  builder.SeeQuota({{"team-a", "of pods"}, nullptr, quota("of pods", std::nullopt)});
  builder.SeeQuota({{"team-b", "none"}, nullptr, quota("none", 0)});
  builder.SeePod({{"team-a", "pending"}, nullptr, pod(3, [](api::Pod&) {})});
  builder.SeePod({{"team-c", "elsewhere"}, nullptr, pod(3, [](api::Pod&) {})});
  const auto ended = pod(1, [](api::Pod& p) { p.phase = api::PodPhase::kFailed; });
  builder.SeePod({{"team-a", "ended"}, pod(1, [](api::Pod&) {}), ended});
  builder.SeeJob({"team-a", "digits"}, &view);
  for (const api::Pod& learner : view.learners) {
    builder.SeePod({{"team-a", learner.meta.name}, nullptr, Shared(learner)});
  }
  const auto stray = pod(2, [](api::Pod& p) { p.meta.labels[std::string(kLabelJobUid)] = "gone"; });
  builder.SeePod({{"team-a", "stray"}, nullptr, stray});
  EXPECT_EQ(builder.Build(At(1)).budgets,
            (std::vector<planner::GpuBudget>{{"team-a", 10 - 3 - 2}, {"team-b", 0}}));
  builder.SeeQuota({{"team-a", "small"}, quota("small", 10), nullptr});
  builder.SeePod({{"team-a", "stray"}, stray, nullptr});
  EXPECT_EQ(builder.Build(At(2)).budgets[0].gpus, 100 - 3);
}

// The job was admitted when its template could be read, and its learners live.
TEST(SnapshotBuilder, AJobWhoseTemplateCannotBeReadIsLetGoWithItsSize) {
  JobView view = TrainingView(2);
  Edit(view.job).spec.elastic.gpus_per_learner = 2;
  view.needs = nullptr;
  SetTemplate(R"({"spec":{"nodeSelector":{"gpu":true}}})", Edit(view.job).spec);
  ASSERT_TRUE(IsPlanned(view)) << "its learners must be ended";
  const planner::JobView planned = PlannerView(view);
  EXPECT_TRUE(planned.suspended);
  EXPECT_EQ(planned.needs.resources.gpus, 2);
  EXPECT_EQ(planned.learners.size(), 2u);
}

TEST(SnapshotBuilder, ADeletedJobIsPlannedAsSuspended) {
  JobView view = TrainingView(2);
  Edit(view.job).meta.deleted = At(1);
  EXPECT_TRUE(PlannerView(view).suspended);
  EXPECT_FALSE(PlannerView(view).finished) << "it holds GPUs";
}

// An edit acts with the next plan.
TEST(SnapshotBuilder, TheMinimumEfficiencyIsThatOfTheSpec) {
  JobView view = TrainingView(1);
  EXPECT_EQ(PlannerView(view).training.min_efficiency, 0);
  Edit(view.job).spec.elastic.min_efficiency = 50;
  EXPECT_EQ(PlannerView(view).training.min_efficiency, 50);
}

TEST(SnapshotBuilder, BoundsTheAttainedService) {
  JobView view = TrainingView(1);
  const std::pair<double, std::int64_t> kCases[] = {
      {0, 0}, {-5, 0}, {12.9, 12}, {1e300, 100'000'000'000'000}, {std::nan(""), 0},
  };
  for (const auto& [attained, planned] : kCases) {
    view.soft_state.meter.recent_gpu_seconds = attained;
    EXPECT_EQ(PlannerView(view).waiting.attained_gpu_seconds, planned) << attained;
  }
}

TEST(SnapshotBuilder, LearnersCountForTheirJobNotAsForeign) {
  JobView view = TrainingView(5);
  view.learners[1] = Learner(1, Life::kStarting);
  view.learners[2] = Learner(2, Life::kGated, "gpu-2");
  view.learners[3] = Deleting(view.learners[3]);
  view.learners.push_back(Learner(5, Life::kFailed));
  view.learners.push_back(Deleting(Learner(6, Life::kGated)));
  view.soft_state.clocks.starting_since[Name(1)] = At(40);
  view.soft_state.clocks.leaving_since[Name(4)] = At(45);
  view.soft_state.nodes.strikes["gpu-9"] = {.count = 1, .avoid_until = At(99)};
  view.soft_state.refusals.grants = RefusedGrants{.since = At(48), .gates = {Name(2)}};
  Edit(view.job).spec.start_timeout = std::chrono::seconds(30);
  std::vector<std::shared_ptr<const api::Pod>> pods;
  for (const api::Pod& pod : view.learners) pods.push_back(std::make_shared<const api::Pod>(pod));
  const auto snapshot = Build({GpuNode("gpu-1", 8)}, pods, {&view}, At(50));
  EXPECT_EQ(snapshot.nodes[0].foreign, planner::Resources{});
  ASSERT_EQ(snapshot.jobs.size(), 1u);
  const planner::JobView& job = snapshot.jobs[0];
  EXPECT_FALSE(job.suspended);
  EXPECT_EQ(job.training.logical_shards, 32);
  EXPECT_EQ(job.share.desired, 5);
  ASSERT_EQ(job.avoided.size(), 1u);
  ASSERT_EQ(job.learners.size(), 5u) << "ended ones, and gated ones that are deleted, hold nothing";
  using enum planner::LearnerState;
  EXPECT_EQ(job.learners[0].state, kRunning);
  EXPECT_TRUE(job.learners[0].member);
  EXPECT_EQ(job.learners[1].state, kStarting);
  EXPECT_EQ(job.learners[1].since, At(40));
  EXPECT_EQ(job.learners[2].state, kGated);
  EXPECT_EQ(job.learners[2].node, "gpu-2");
  EXPECT_TRUE(job.learners[2].refused);
  EXPECT_FALSE(job.learners[1].refused);
  EXPECT_EQ(job.refused_since, At(48));
  EXPECT_EQ(job.start_timeout, std::chrono::seconds(30));
  EXPECT_EQ(job.learners[3].state, kLeaving);
  EXPECT_EQ(job.learners[4].state, kLeaving);
  EXPECT_EQ(job.learners[4].since, At(45));
}

// Admission added a sidecar to one pod; another one's second container requests a GPU.
TEST(SnapshotBuilder, CountsWhatLearnersRequestBeyondTheirTemplate) {
  JobView view = TrainingView(2);
  view.learners[0].requests = {.gpus = 1, .cpu_millis = 300, .memory_bytes = 40};
  view.learners[1].requests = {.gpus = 2};
  std::vector<std::shared_ptr<const api::Pod>> pods;
  for (const api::Pod& pod : view.learners) pods.push_back(std::make_shared<const api::Pod>(pod));
  const auto foreign = [&] {
    return Build({GpuNode("gpu-1", 8)}, pods, {&view}, At(10)).nodes.at(0).foreign;
  };
  EXPECT_EQ(foreign(), (planner::Resources{.gpus = 1, .cpu_millis = 300, .memory_bytes = 40}));
  // When the needs of admitted learners are known, each learner counts with them.
  view.soft_state.checked_template.admitted_needs = {
      view.job->spec.learner_template.hash,
      std::make_shared<const planner::PodNeeds>(
          planner::PodNeeds{.resources = {.gpus = 1, .cpu_millis = 300, .memory_bytes = 40}})};
  EXPECT_EQ(foreign(), (planner::Resources{.gpus = 1}));
  EXPECT_EQ(PlannerView(view).needs.resources.cpu_millis, 300);
}

// The snapshot depends only on the final objects, not on the order of the changes.
TEST(SnapshotBuilder, FollowsEveryChange) {
  std::mt19937 random(5);
  const auto pick = [&](int count) { return static_cast<int>(random() % unsigned(count)); };
  const QueueBook book;
  SnapshotBuilder builder(book, "pliant");
  std::map<std::string, std::shared_ptr<const api::Node>> nodes;
  std::map<std::string, std::shared_ptr<const api::Pod>> pods;
  std::map<std::string, JobView> jobs;
  for (int step = 0; step < 2'000; ++step) {
    const std::string name = Format("n-{}", pick(6));
    if (const int what = pick(3); what == 0) {
      auto& node = nodes[name];
      const auto before = std::exchange(node, pick(3) == 0 ? nullptr : GpuNode(name, pick(3)));
      if (before != nullptr || node != nullptr) builder.SeeNode({{"", name}, before, node});
      if (node == nullptr) nodes.erase(name);
    } else if (what == 1) {
      auto& pod = pods[name];
      const auto before = std::exchange(pod, pick(3) == 0 ? nullptr : Foreign(name, [&](auto& p) {
                                          p.node_name = Format("n-{}", pick(6));
                                          p.requests.gpus = pick(4);
                                          if (pick(2) == 0)
                                            p.meta.labels[std::string(kLabelJobUid)] = kUid;
                                          if (pick(4) == 0) p.phase = api::PodPhase::kFailed;
                                        }));
      if (before != nullptr || pod != nullptr) builder.SeePod({{"", name}, before, pod});
      if (pod == nullptr) pods.erase(name);
    } else if (pick(3) == 0) {
      jobs.erase(name);
      builder.SeeJob({"team-a", name}, nullptr);
    } else {
      JobView& job = jobs[name] = {.job = Shared(AdmittedJob(pick(3)))};
      Edit(job.job).meta.name = name;
      // The job owns some of the pods as its learners.
      for (const auto& [_, pod] : pods) {
        if (pod->meta.labels.contains(std::string(kLabelJobUid)) && pick(2) == 0) {
          job.learners.push_back(*pod);
        }
      }
      builder.SeeJob({"team-a", name}, &job);
    }
    if (pick(4) != 0) continue;
    std::vector<std::shared_ptr<const api::Node>> all_nodes;
    std::vector<std::shared_ptr<const api::Pod>> all_pods;
    std::vector<const JobView*> all_jobs;
    for (const auto& [_, node] : nodes) all_nodes.push_back(node);
    for (const auto& [_, pod] : pods) all_pods.push_back(pod);
    for (const auto& [_, job] : jobs) all_jobs.push_back(&job);
    ASSERT_EQ(builder.Build(At(1)), Build(all_nodes, all_pods, all_jobs, At(1))) << step;
  }
}

void Yield(QueueBook& book, bool yields) {
  api::GpuPool pool;
  pool.meta.name = "default";
  pool.spec.yields_to_pending = yields;
  book.SetPool("default", std::make_shared<const api::GpuPool>(pool));
}

// Anybody may create thousands of pods that find no node.
TEST(SnapshotBuilder, PendingPodsAreBoundedAndShareTheirNeeds) {
  QueueBook book;
  SnapshotBuilder builder(book, "pliant");
  const api::SharedNeeds needs{std::make_shared<const planner::PodNeeds>()};
  const auto see = [&](const std::string& ns, int number, int created) {
    builder.SeePod(
        {{ns, Format("p-{}", number)}, nullptr, Foreign(Format("p-{}", number), [&](auto& p) {
           p.meta.name_space = ns;
           p.meta.created = At(created);
           p.unschedulable = true;
           p.asks = needs;
         })});
  };
  for (int number = 0; number < 300; ++number) see("flood", number, 300 - number);
  EXPECT_EQ(builder.Build(At(400)).pending.size(), 0u) << "no pool yields";
  Yield(book, true);
  const auto& pending = builder.Build(At(400)).pending;
  ASSERT_EQ(pending.size(), 256u);
  for (const planner::PendingPod& pod : pending) {
    EXPECT_LE(pod.since, At(256)) << "the oldest count";
    EXPECT_EQ(pod.asks.needs, needs.needs) << "one object";
  }
  for (int ns = 0; ns < 10; ++ns) {
    for (int number = 0; number < 256; ++number) see(Format("n-{}", ns), number, 1000 + ns);
  }
  ASSERT_EQ(builder.Build(At(2000)).pending.size(), 2048u);
  for (const planner::PendingPod& pod : builder.snapshot().pending) EXPECT_LE(pod.since, At(1007));
  Yield(book, false);
  EXPECT_EQ(builder.Build(At(2000)).pending.size(), 0u);
}

// Pods of other workloads for which the scheduler finds no node.
TEST(SnapshotBuilder, PendingPods) {
  QueueBook book;
  Yield(book, true);
  SnapshotBuilder builder(book, "pliant");
  const auto pod = [](const std::function<void(api::Pod&)>& edit = {}) {
    return Foreign("notebook", [&](auto& p) {
      p.node_name.clear();
      p.unschedulable = true;
      p.requests.gpus = 2;
      p.asks.needs =
          std::make_shared<const planner::PodNeeds>(planner::PodNeeds{.resources = {.gpus = 2}});
      if (edit) edit(p);
    });
  };
  std::shared_ptr<const api::Pod> before;
  const auto pending_with = [&](std::shared_ptr<const api::Pod> after) {
    builder.SeePod({{"others", "notebook"}, std::exchange(before, after), after});
    return builder.Build(At(1)).pending.size();
  };
  EXPECT_EQ(pending_with(pod()), 1u);
  EXPECT_EQ(builder.snapshot().pending.front().gpus, 2);
  EXPECT_EQ(pending_with(pod([](auto& p) {
              p.node_name = "n";
              p.unschedulable = false;
            })),
            0u);
  EXPECT_EQ(pending_with(pod([](auto& p) { p.nominated_node_name = "n"; })), 0u)
      << "room is made for it already";
  EXPECT_EQ(pending_with(pod([](auto& p) { p.phase = api::PodPhase::kFailed; })), 0u);
  EXPECT_EQ(pending_with(pod([](auto& p) { p.meta.labels[std::string(kLabelJobUid)] = kUid; })), 0u)
      << "a learner, or a pod that says so";
  EXPECT_EQ(pending_with(pod()), 1u);
  EXPECT_EQ(pending_with(nullptr), 0u);
}

// The node offers two GPUs, and seven MIG devices.
class OtherResource : public testing::Test {
 protected:
  static constexpr const char* kMig = "nvidia.com/mig-1g.10gb";

  OtherResource() {
    auto node = std::make_shared<api::Node>(*GpuNode("n", 2));
    node->meta.labels = {{"mig", "yes"}};
    node->allocatable.others[kMig] = 7;
    builder.SeeNode({{"", "n"}, nullptr, node});
  }
  void SetPool() {
    api::GpuPool pool;
    pool.meta.name = "mig";
    pool.spec = {.node_selector = {.match_labels = {{"mig", "yes"}}}, .resource_name = kMig};
    pool.spec.yields_to_pending = true;
    book.SetPool("mig", std::make_shared<const api::GpuPool>(pool));
  }
  void SeePod(const std::string& name, const std::function<void(api::Pod&)>& change) {
    builder.SeePod({{"others", name}, nullptr, Foreign(name, change)});
  }

  QueueBook book;
  SnapshotBuilder builder{book, "pliant"};
};

TEST_F(OtherResource, ANodeOffersWhatItsPoolCountsAsGpus) {
  SeePod("both", [&](api::Pod& pod) {
    pod.node_name = "n";
    pod.requests.others[kMig] = 3;
  });
  const planner::NodeView& node = builder.Build(At(1)).nodes.at(0);
  EXPECT_EQ(node.allocatable.gpus, 2);
  EXPECT_EQ(node.foreign.gpus, 1);
  SetPool();
  EXPECT_EQ(builder.Build(At(2)).nodes.at(0).pool, "mig");
  EXPECT_EQ(builder.snapshot().nodes.at(0).allocatable.gpus, 7);
  EXPECT_EQ(builder.snapshot().nodes.at(0).foreign.gpus, 3);
  book.SetPool("mig", nullptr);
  EXPECT_EQ(builder.Build(At(3)).nodes.at(0).allocatable.gpus, 2);
  EXPECT_EQ(builder.snapshot().nodes.at(0).foreign.gpus, 1);
}

TEST_F(OtherResource, ANodeThatOffersNothingElseIsThereForItsPoolOnly) {
  auto node = std::make_shared<api::Node>(*GpuNode("m", 0));
  node->meta.labels = {{"mig", "yes"}};
  node->allocatable.others[kMig] = 4;
  builder.SeeNode({{"", "m"}, nullptr, node});
  EXPECT_EQ(builder.Build(At(1)).nodes.size(), 1u);
  SetPool();
  EXPECT_EQ(builder.Build(At(2)).nodes.size(), 2u);
  book.SetPool("mig", nullptr);
  EXPECT_EQ(builder.Build(At(3)).nodes.size(), 1u);
  SetPool();
  builder.SeeNode({{"", "m"}, node, nullptr});
  EXPECT_EQ(builder.Build(At(4)).nodes.size(), 1u);
}

TEST_F(OtherResource, PendingPodsAndQuotasCountForPoolsOfTheirResource) {
  SetPool();
  SeePod("pending", [&](api::Pod& pod) {
    pod.unschedulable = true;
    pod.requests = {.others = {{kMig, 2}}};
    pod.asks.needs = std::make_shared<const planner::PodNeeds>();
  });
  auto quota = std::make_shared<api::ResourceQuota>();
  quota->meta.name = "q";
  quota->gpus = 9;
  quota->others[kMig] = 5;
  builder.SeeQuota({{"others", "q"}, nullptr, quota});
  const planner::ClusterSnapshot& snapshot = builder.Build(At(1));
  ASSERT_EQ(snapshot.pending.size(), 1u);
  EXPECT_EQ(snapshot.pending.at(0).resource, kMig);
  EXPECT_EQ(snapshot.pending.at(0).gpus, 2);
  EXPECT_EQ(snapshot.budgets,
            (std::vector<planner::GpuBudget>{{"others", 9, ""}, {"others", 5 - 2, kMig}}));
}

TEST(SnapshotBuilder, AJobIsPlannedAsSoonAsItsTemplateIsAccepted) {
  JobView view{.job = Shared(NewJob())};
  EXPECT_TRUE(PlannerView(view).suspended);
  view.soft_state.checked_template.check = TemplateCheck{.generation = 1, .accepted = true};
  EXPECT_FALSE(PlannerView(view).suspended);
  EXPECT_EQ(PlannerView(view).training.logical_shards, 16);
  Edit(view.job).meta.generation = 2;
  EXPECT_TRUE(PlannerView(view).suspended) << "the job was edited since";
}

TEST(SnapshotBuilder, AJobThatIsNotAdmittedIsLetGo) {
  JobView view = TrainingView(1);
  SetCondition(Edit(view.job).status, kConditionAdmitted,
               {api::ConditionStatus::kFalse, "Suspended", ""}, 2, At(1));
  EXPECT_TRUE(PlannerView(view).suspended);
}

}  // namespace
}  // namespace pliant::controller
