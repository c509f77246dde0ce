#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <ctime>
#include <fstream>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "base/format.h"
#include "operator/planner/carry_out.h"
#include "operator/planner/fit_memory.h"
#include "operator/planner/plan.h"
#include "tests/bench/operator/rows.h"

// Measures the time of plans for clusters of four sizes in which jobs come and go, priorities are
// edited and nodes are lost. Times are processor time of the thread, so that they are comparable on
// a busy machine.
namespace pliant::planner {
namespace {

constexpr std::int64_t kGiB = std::int64_t{1} << 30;
constexpr WallTime kNow{std::chrono::sys_days{std::chrono::year{2026} / 1 / 1}};
constexpr int kGpusOfNode = 8;

struct Size {
  int nodes = 0;
  int jobs = 0;
  int queues = 0;
  double aim_ms = 0;               // of the slowest of a hundred plans; 0: none
  std::optional<double> rival_ms;  // published, at the same size
  // All queues share by speed, and jobs have curves of up to 64 learners.
  bool by_speed = false;
  // Pods of others that wait for a node, in a pool that yields. Each has about the largest needs
  // that the operator keeps, unlike those of the others, and fits nowhere.
  int pending = 0;
};

// Published times of one decision at 64 GPUs and 160 jobs: Gavel 13 ms, Sia 96 ms, Pollux 2.2 s
// (Sia, SOSP 2023, section 5.6).
constexpr double kGavelMs = 13;
const Size kSizes[] = {{.nodes = 8, .jobs = 160, .queues = 4, .aim_ms = 1, .rival_ms = kGavelMs},
                       {.nodes = 64, .jobs = 1'280, .queues = 12},
                       {.nodes = 256, .jobs = 5'120, .queues = 25, .aim_ms = 5},
                       {.nodes = 1'000, .jobs = 10'000, .queues = 50, .aim_ms = 20}};
const Size kBySpeed{
    .nodes = 256, .jobs = 5'120, .queues = 25, .aim_ms = 10, .rival_ms = {}, .by_speed = true};

// The most that the operator hands to the planner.
constexpr int kPending = 2048;

// Half of the jobs share the GPUs, others wait for one kind of node, have ended or are suspended.
// Queues differ in weight and policy; every second one has a guarantee, every third one a limit.
class Cluster {
 public:
  explicit Cluster(const Size& size) : size_(size) {
    snapshot_.now = kNow;
    for (int index = 0; index < size.nodes; ++index) AddNode(index);
    for (int index = 0; index < size.queues; ++index) AddQueue(index);
    for (int index = 0; index < size.jobs; ++index) snapshot_.jobs.push_back(NewJob(index));
    std::ranges::sort(snapshot_.jobs, {}, &JobView::key);
    if (size.pending > 0) snapshot_.pools.push_back({.yields = true});
    for (int index = 0; index < size.pending; ++index) AddPending(index);
  }

  // Milliseconds of the thread.
  double TimeOfPlan() {
    const double begin = ThreadMs();
    plan_ = MakePlan(snapshot_, {}, memory_);
    return ThreadMs() - begin;
  }

  // Starts all pods that the last plan wants, at once.
  void CarryOut() {
    for (std::size_t index = 0; index < plan_.decisions.size(); ++index) {
      const Decision& decision = plan_.decisions[index];
      JobView& job = snapshot_.jobs[index];
      std::erase_if(job.learners, [&](const LearnerView& learner) {
        return std::ranges::contains(decision.drop, learner.name);
      });
      for (const NewLearner& learner : decision.create) {
        job.learners.push_back({.name = Format("{}-{}", job.key.name, next_learner_++),
                                .node = learner.node,
                                .state = LearnerState::kRunning,
                                .created = snapshot_.now,
                                .since = snapshot_.now});
      }
      job.share = ShareAfter(job.share, decision, snapshot_.now);
    }
  }

  // One of the things that make an operator plan.
  void Change() {
    snapshot_.now += Seconds{10};
    switch (Draw(0, 3)) {
      case 0: {  // a job ends, and another one comes
        JobView& job = snapshot_.jobs[AnyJob()];
        const JobKey key = job.key;
        job = NewJob(Draw(0, 1'000'000));
        job.key = key;
        job.submitted = snapshot_.now;
        break;
      }
      case 1:
        snapshot_.jobs[AnyJob()].priority = Draw(1, 100) * 100;
        break;
      case 2:
        snapshot_.jobs[AnyJob()].suspended = DrawOneIn(2);
        break;
      case 3: {  // a node is lost, and the one before it is back
        const auto nodes = static_cast<int>(snapshot_.nodes.size());
        snapshot_.nodes[static_cast<std::size_t>(lost_node_)].ready = true;
        lost_node_ = Draw(0, nodes - 1);
        snapshot_.nodes[static_cast<std::size_t>(lost_node_)].ready = false;
        break;
      }
    }
  }

 private:
  static double ThreadMs() {
    std::timespec time{};
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return 1e3 * static_cast<double>(time.tv_sec) + 1e-6 * static_cast<double>(time.tv_nsec);
  }
  int Draw(int from, int to) {
    return from + static_cast<int>(random_() % static_cast<unsigned>(to - from + 1));
  }
  bool DrawOneIn(int times) { return Draw(1, times) == 1; }
  std::size_t AnyJob() { return static_cast<std::size_t>(Draw(0, size_.jobs - 1)); }

  void AddNode(int index) {
    snapshot_.nodes.push_back(
        {.name = Format("node-{:05}", index),
         .allocatable = {.gpus = kGpusOfNode, .cpu_millis = 96'000, .memory_bytes = 1024 * kGiB},
         .labels = {{"gpu", index % 4 == 0 ? "a100" : "h100"}},
         .version = {static_cast<std::uint64_t>(index + 1)}});
  }

  void AddQueue(int index) {
    QueueView queue{.name = Format("queue-{:02}", index), .weight = Draw(1, 8) * 25};
    const std::int64_t part = std::int64_t{size_.nodes} * kGpusOfNode / size_.queues;
    if (index % 2 == 0) queue.guaranteed_gpus = part;
    if (index % 3 == 0) queue.limit_gpus = 4 * part;
    queue.policy = size_.by_speed ? QueuePolicy::kThroughput : static_cast<QueuePolicy>(index % 3);
    queue.favors_short_jobs = size_.by_speed && index % 2 == 0;
    queue.strict = index % 5 == 0;
    snapshot_.queues.push_back(queue);
  }

  void AddPending(int index) {
    NodeRequirement requirement{.key = "gpu", .op = NodeOperator::kIn};
    for (int value = 0; value < 40; ++value) {
      requirement.values.push_back(Format("{}-{:050}", index, value));
    }
    PodNeeds needs;
    needs.node_affinity = {{std::move(requirement)}};
    snapshot_.pending.push_back({.name_space = Format("team-{:02}", index % 8),
                                 .name = Format("pod-{}", index),
                                 .gpus = 1,
                                 .asks = {std::make_shared<const PodNeeds>(std::move(needs))},
                                 .since = kNow});
  }

  JobView NewJob(int index) {
    const bool needs_a100 = DrawOneIn(10);
    const int min = needs_a100 ? Draw(1, 8) : 1;
    JobView job{.key = {Format("team-{:02}", index % 20), Format("job-{:06}", index),
                        Format("{:08x}", random_())},
                .queue = Format("queue-{:02}", Draw(0, size_.queues - 1)),
                .priority = Draw(1, 100) * 100,
                .min_learners = min,
                .max_learners = min + Draw(0, 12),
                .training = {.logical_shards = 64},
                .submitted = kNow - Seconds{Draw(0, 100'000)},
                .waiting = {.attained_gpu_seconds = Draw(0, 1'000'000)}};
    job.needs.resources = {.gpus = 1, .cpu_millis = 8'000, .memory_bytes = 64 * kGiB};
    job.needs.tolerations = {{.key = "nvidia.com/gpu", .exists = true}};
    if (needs_a100) job.needs.node_selector = {{"gpu", "a100"}};
    if (size_.by_speed) {
      job.max_learners = 64;
      job.training.speeds = NewCurve(job.max_learners);
      job.training.alone_seconds = Draw(60, 1'000'000);
    }
    job.finished = Draw(1, 10) <= 3;
    job.suspended = DrawOneIn(10);
    return job;
  }

  // Each learner on a node adds a little less than the one before; each further node costs much.
  SpeedCurve NewCurve(int sizes) {
    const int efficiency = Draw(600, 990);
    const int of_a_node = Draw(100, 900);
    SpeedCurve speeds;
    double more = 1000;
    double speed = 0;
    for (int size = 1; size <= sizes; ++size) {
      speed += more;
      more = more * efficiency / 1000;
      const int nodes = (size + kGpusOfNode - 1) / kGpusOfNode;
      speeds.push_back(std::max(static_cast<int>(speed) - of_a_node * (nodes - 1), 1));
    }
    return speeds;
  }

  const Size size_;
  std::mt19937 random_{1};  // the same cluster every time
  ClusterSnapshot snapshot_;
  Plan plan_;
  FitMemory memory_;
  int next_learner_ = 0;
  int lost_node_ = 0;
};

struct Measured {
  Size size;
  double p50_ms = 0;
  double p99_ms = 0;
};

void Measure(Cluster& cluster, int plans, std::vector<double>& times) {
  for (int plan = 0; plan < plans; ++plan) {
    cluster.Change();
    times.push_back(cluster.TimeOfPlan());
    cluster.CarryOut();
  }
}

void Fill(Cluster& cluster) {
  for (int round = 0; round < 6; ++round) {
    cluster.TimeOfPlan();
    cluster.CarryOut();
  }
}

Measured Measure(const Size& size, int plans) {
  Cluster cluster(size);
  Fill(cluster);
  std::vector<double> times;
  Measure(cluster, plans, times);
  return {size, *bench::Quantile(times, 0.5), *bench::Quantile(times, 0.99)};
}

// The same cluster with and without pods that wait, alternately.
void ReportPending(Size size, int plans, std::vector<bench::Row>& rows) {
  Cluster without(size);
  size.pending = kPending;
  Cluster with(size);
  Fill(without);
  Fill(with);
  std::vector<double> times_without;
  std::vector<double> times_with;
  for (int turn = 0; turn < 10; ++turn) {
    Measure(without, plans / 10, times_without);
    Measure(with, plans / 10, times_with);
  }
  for (const double quantile : {0.5, 0.99}) {
    bench::Report(
        {.name = Format("plan of {} jobs with {} pods that wait and fit nowhere, p{:.0f}; "
                        "rival: without them",
                        size.jobs, kPending, 100 * quantile),
         .value = *bench::Quantile(times_with, quantile),
         .unit = "ms",
         .rival = *bench::Quantile(times_without, quantile)},
        rows);
  }
}

// The exponent e of time ~ jobs^e, by least squares over all sizes.
double Growth(const std::vector<Measured>& sizes) {
  double sum_x = 0, sum_y = 0, sum_xx = 0, sum_xy = 0;
  for (const Measured& each : sizes) {
    const double x = std::log(each.size.jobs);
    const double y = std::log(each.p50_ms);
    sum_x += x;
    sum_y += y;
    sum_xx += x * x;
    sum_xy += x * y;
  }
  const auto count = static_cast<double>(sizes.size());
  return (count * sum_xy - sum_x * sum_y) / (count * sum_xx - sum_x * sum_x);
}

// Time over jobs, both on logarithmic axes, with a straight line of slope 1 through the first
// point.
std::string Svg(const std::vector<Measured>& sizes) {
  constexpr double kWidth = 560, kHeight = 360, kLeft = 60, kBottom = 310;
  const auto x = [](double jobs) { return kLeft + 230 * (std::log10(jobs) - 2); };
  const auto y = [](double ms) { return kBottom - 90 * (std::log10(ms) + 1.5); };
  std::string svg = Format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {} {}\" font-family=\"sans-serif\" "
      "font-size=\"12\">\n<rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n",
      kWidth, kHeight);
  for (const double ms : {0.1, 1.0, 10.0}) {
    svg += Format(
        "<line x1=\"{}\" x2=\"{}\" y1=\"{:.1f}\" y2=\"{:.1f}\" stroke=\"#ddd\"/><text "
        "x=\"8\" y=\"{:.1f}\">{} ms</text>\n",
        kLeft, kWidth - 20, y(ms), y(ms), y(ms) + 4, ms);
  }
  const double first = sizes.front().p50_ms / sizes.front().size.jobs;
  svg += Format(
      "<line x1=\"{:.1f}\" y1=\"{:.1f}\" x2=\"{:.1f}\" y2=\"{:.1f}\" stroke=\"#999\" "
      "stroke-dasharray=\"5\"/>\n",
      x(sizes.front().size.jobs), y(sizes.front().p50_ms), x(sizes.back().size.jobs),
      y(first * sizes.back().size.jobs));
  for (const auto& [field, colour] :
       {std::pair{&Measured::p50_ms, "#1f77b4"}, std::pair{&Measured::p99_ms, "#d62728"}}) {
    std::string points;
    for (const Measured& each : sizes) {
      points += Format("{:.1f},{:.1f} ", x(each.size.jobs), y(each.*field));
    }
    svg += Format("<polyline points=\"{}\" fill=\"none\" stroke=\"{}\" stroke-width=\"2\"/>\n",
                  points, colour);
  }
  for (const Measured& each : sizes) {
    svg += Format(
        "<text x=\"{:.1f}\" y=\"{}\" text-anchor=\"middle\">{} jobs</text><text "
        "x=\"{:.1f}\" y=\"{}\" text-anchor=\"middle\">{} GPUs</text>\n",
        x(each.size.jobs), kBottom + 18, each.size.jobs, x(each.size.jobs), kBottom + 34,
        each.size.nodes * kGpusOfNode);
  }
  return svg +
         "<text x=\"70\" y=\"24\" fill=\"#d62728\">p99</text><text x=\"110\" y=\"24\" "
         "fill=\"#1f77b4\">p50</text><text x=\"150\" y=\"24\" fill=\"#777\">dashed: linear "
         "growth from the smallest size</text>\n</svg>\n";
}

void ReportSize(const Measured& measured, std::vector<bench::Row>& rows) {
  const Size& size = measured.size;
  const std::string name =
      Format("plan of {} jobs, {} GPUs, {} queues{}", size.jobs, size.nodes * kGpusOfNode,
             size.queues, size.by_speed ? " that share by speed" : "");
  bench::Report({.name = name + ", p50", .value = measured.p50_ms, .unit = "ms"}, rows);
  bench::Report({.name = name + ", p99",
                 .value = measured.p99_ms,
                 .unit = "ms",
                 .rival = size.rival_ms,
                 .aim = size.aim_ms > 0 ? std::optional(size.aim_ms) : std::nullopt},
                rows);
}

int Run(int plans, const std::string& json, const std::string& svg) {
  std::vector<bench::Row> rows;
  std::vector<Measured> sizes;
  for (const Size& size : kSizes) {
    sizes.push_back(Measure(size, plans));
    ReportSize(sizes.back(), rows);
  }
  ReportSize(Measure(kBySpeed, plans), rows);
  ReportPending(kSizes[2], plans, rows);
  bench::Report(
      {.name = "exponent of growth with jobs, p50", .value = Growth(sizes), .unit = "", .aim = 1.2},
      rows);
  if (!json.empty()) bench::Write(rows, json);
  if (!svg.empty()) std::ofstream(svg) << Svg(sizes);
  return 0;
}

}  // namespace
}  // namespace pliant::planner

int main(int argc, char** argv) {
  CLI::App app{"Measures the planner."};
  int plans = 500;
  std::string json, svg;
  app.add_option("--plans", plans, "Plans of each size")->check(CLI::Range(1, 100'000));
  app.add_option("--json", json, "File for the rows");
  app.add_option("--svg", svg, "File for a plot of time over size");
  CLI11_PARSE(app, argc, argv);
  return pliant::planner::Run(plans, json, svg);
}
