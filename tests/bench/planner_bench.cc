#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <ctime>
#include <functional>
#include <random>
#include <string>
#include <vector>

#include "base/format.h"
#include "operator/planner/plan.h"

// Measures the time of a plan for 10,000 jobs on 1,000 nodes of 8 GPUs. About 5,000 of the jobs
// share 8,000 GPUs, 800 wait for one kind of node, the others have ended or are suspended. Times
// are processor time, so that they are comparable on a busy machine.
//
//   planner_bench [jobs [nodes [repetitions]]]
namespace pliant::planner {
namespace {

constexpr std::int64_t kGiB = std::int64_t{1} << 30;
constexpr WallTime kNow{std::chrono::sys_days{std::chrono::year{2026} / 1 / 1}};

ClusterSnapshot MakeCluster(int jobs, int nodes) {
  std::mt19937 random(1);  // the same cluster every time
  const auto draw = [&](int from, int to) {
    return from + static_cast<int>(random() % static_cast<unsigned>(to - from + 1));
  };
  ClusterSnapshot snapshot{.now = kNow, .nodes = {}, .jobs = {}};
  for (int index = 0; index < nodes; ++index) {
    snapshot.nodes.push_back(
        {.name = Format("node-{:05}", index),
         .allocatable = {.gpus = 8, .cpu_millis = 96'000, .memory_bytes = 1024 * kGiB},
         .labels = {{"gpu", index % 4 == 0 ? "a100" : "h100"}}});
  }
  for (int index = 0; index < jobs; ++index) {
    const bool needs_a100 = draw(1, 10) == 1;
    const int min = needs_a100 ? draw(1, 8) : 1;
    JobView job{.key = {Format("team-{:02}", index % 20), Format("job-{:05}", index),
                        Format("{:08x}", random())},
                .priority = draw(1, 100) * 100,
                .min_learners = min,
                .max_learners = min + draw(0, 12),
                .logical_shards = 64,
                .submitted = kNow - Seconds{draw(0, 100'000)},
                .attained_gpu_seconds = draw(0, 1'000'000)};
    job.needs.resources = {.gpus = 1, .cpu_millis = 8'000, .memory_bytes = 64 * kGiB};
    job.needs.tolerations = {{.key = "nvidia.com/gpu", .exists = true}};
    if (needs_a100) job.needs.node_selector = {{"gpu", "a100"}};
    job.finished = draw(1, 10) <= 3;
    job.suspended = draw(1, 10) == 1;
    snapshot.jobs.push_back(job);
  }
  std::ranges::sort(snapshot.jobs, {}, &JobView::key);
  return snapshot;
}

// Starts all pods that the plan wants, at once.
void CarryOut(const Plan& plan, ClusterSnapshot& snapshot) {
  for (std::size_t index = 0; index < plan.decisions.size(); ++index) {
    const Decision& decision = plan.decisions[index];
    JobView& job = snapshot.jobs[index];
    std::erase_if(job.learners, [&](const LearnerView& learner) {
      return std::ranges::contains(decision.drop, learner.name);
    });
    for (const NewLearner& learner : decision.create) {
      job.learners.push_back({.name = Format("{}-{}", job.key.name, job.learners.size()),
                              .node = learner.node,
                              .state = LearnerState::kRunning,
                              .created = snapshot.now,
                              .since = snapshot.now});
    }
    job.learners_desired = decision.to;
  }
}

void Measure(const char* what, int repetitions, ClusterSnapshot& snapshot,
             const std::function<void(int)>& change) {
  std::vector<double> milliseconds;
  std::size_t changed = 0;
  for (int repetition = 0; repetition < repetitions; ++repetition) {
    change(repetition);
    const std::clock_t begin = std::clock();
    const Plan plan = MakePlan(snapshot, {});
    milliseconds.push_back(1000.0 * static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC);
    changed += static_cast<std::size_t>(std::ranges::count_if(
        plan.decisions, [](const Decision& decision) { return !decision.ChangesNothing(); }));
  }
  std::ranges::sort(milliseconds);
  const auto at = [&](std::size_t percent) {
    return milliseconds[(milliseconds.size() - 1) * percent / 100];
  };
  std::printf("%-32s p50 %7.2f ms   p99 %7.2f ms   changes %.1f jobs a plan\n", what, at(50),
              at(99), static_cast<double>(changed) / repetitions);
}

int Run(int jobs, int nodes, int repetitions) {
  ClusterSnapshot snapshot = MakeCluster(jobs, nodes);
  std::printf("%d jobs, %d nodes, %d GPUs\n", jobs, nodes, nodes * 8);
  Measure("nothing runs yet", std::min(repetitions, 10), snapshot, [](int) {});
  for (int round = 0; round < 5; ++round) CarryOut(MakePlan(snapshot, {}), snapshot);
  Measure("nothing changed", repetitions, snapshot, [](int) {});
  std::mt19937 random(2);
  Measure("a job ended, another came", repetitions, snapshot, [&](int) {
    JobView& ended = snapshot.jobs[random() % snapshot.jobs.size()];
    ended.learners.clear();
    ended.learners_desired = 0;
    ended.attained_gpu_seconds = 0;
    CarryOut(MakePlan(snapshot, {}), snapshot);
    snapshot.jobs[random() % snapshot.jobs.size()].attained_gpu_seconds = 0;
  });
  Measure("a priority was edited", repetitions, snapshot, [&](int) {
    snapshot.jobs[random() % snapshot.jobs.size()].priority =
        100 + static_cast<int>(random() % 9'900);
  });
  Measure("a node was lost", repetitions, snapshot, [&](int repetition) {
    const auto count = static_cast<int>(snapshot.nodes.size());
    snapshot.nodes[static_cast<std::size_t>((repetition + count - 1) % count)].ready = true;
    snapshot.nodes[static_cast<std::size_t>(repetition % count)].ready = false;
  });
  return 0;
}

}  // namespace
}  // namespace pliant::planner

int main(int argc, char** argv) {
  const auto number = [&](int index, int otherwise) {
    return argc > index ? std::stoi(argv[index]) : otherwise;
  };
  return pliant::planner::Run(number(1, 10'000), number(2, 1'000), number(3, 200));
}
