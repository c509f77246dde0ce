#include "tests/scenario/planner/happenings.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/format.h"

namespace pliant::planner {
namespace {

using Names = std::vector<std::string>;

Seconds SecondsOf(std::int64_t count) { return Seconds{count}; }

// Nodes.

void ReadNode(Fields& fields, NodeView& node) {
  fields.ReadTo<std::int64_t>("gpus", node.allocatable.gpus);
  fields.ReadTo<std::int64_t>("foreign", node.foreign.gpus);
  fields.ReadTo<std::map<std::string, std::string>>("labels", node.labels);
  if (const auto product = fields.Read<std::string>("product")) {
    node.labels[kGpuProductLabel] = *product;
  }
  if (const auto driver = fields.Read<std::string>("driver")) {
    node.labels[kGpuDriverLabel] = *driver;
  }
  fields.ReadTo<bool>("ready", node.ready);
  fields.ReadTo<std::string>("pool", node.pool);
  if (const auto cordoned = fields.Read<bool>("cordoned")) node.schedulable = !*cordoned;
  fields.Done();
}

std::vector<NodeView> ReadNodes(const YAML::Node& yaml) {
  if (yaml.IsMap()) {
    Fields fields(yaml, "nodes");
    const int count = fields.Read<int>("count").value_or(1);
    const int gpus = fields.Read<int>("gpus").value_or(8);
    fields.Done();
    return Nodes(count, gpus);
  }
  std::vector<NodeView> nodes;
  for (const YAML::Node& each : yaml) {
    Fields fields(each, "a node");
    NodeView node = GpuNode(fields.Read<std::string>("name").value_or(""), 8);
    if (node.name.empty()) throw Mistake(each, "a node has no name");
    ReadNode(fields, node);
    nodes.push_back(node);
  }
  return nodes;
}

void ChangeNodes(const std::optional<YAML::Node>& yaml, TimedWorld& timed) {
  ForEach(yaml, "nodes", [&](const std::string& name, const YAML::Node& value) {
    std::vector<NodeView>& nodes = timed.world.snapshot.nodes;
    auto at = std::ranges::find(nodes, name, &NodeView::name);
    if (value.IsScalar() && value.Scalar() == "lost") {
      if (at == nodes.end()) throw Mistake(value, "there is no node " + name);
      at->ready = false;
      timed.EndLearnersOn(name);
      return;
    }
    if (at == nodes.end()) at = nodes.insert(at, GpuNode(name, 8));
    Fields fields(value, "node " + name);
    ReadNode(fields, *at);
  });
}

// Queues, and rules of the cluster.

constexpr std::string_view kPolicies[] = {"FairShare", "Priority", "Fifo", "Throughput"};
constexpr std::string_view kBiases[] = {"None", "ShortJobs"};
constexpr std::string_view kQueueings[] = {"BestEffort", "Strict"};
constexpr std::string_view kReclaims[] = {"Evict", "ShrinkOnly"};
constexpr std::string_view kStops[] = {"None", "Hold", "Drain"};

void ReadQueue(const std::string& name, const YAML::Node& yaml, TimedWorld& timed) {
  std::vector<QueueView>& queues = timed.world.snapshot.queues;
  auto at = std::ranges::find(queues, name, &QueueView::name);
  if (at == queues.end()) at = queues.insert(at, QueueView{.name = name});
  Fields fields(yaml, "queue " + name);
  fields.ReadTo<std::string>("pool", at->pool);
  fields.ReadTo<int>("weight", at->weight);
  fields.ReadTo<std::int64_t>("guaranteed", at->guaranteed_gpus);
  fields.ReadTo<std::int64_t>("limit", at->limit_gpus);
  fields.ReadTo<std::int64_t>("lendingLimit", at->lending_limit_gpus);
  if (const auto half_life = fields.Read<std::int64_t>("serviceHalfLifeSeconds")) {
    at->half_life = SecondsOf(*half_life);
  }
  if (const auto word = fields.ReadWord("policy", kPolicies)) {
    at->policy = static_cast<QueuePolicy>(*word);
  }
  if (const auto word = fields.ReadWord("bias", kBiases)) at->favors_short_jobs = *word == 1;
  if (const auto word = fields.ReadWord("queueing", kQueueings)) at->strict = *word == 1;
  if (const auto word = fields.ReadWord("reclaim", kReclaims)) at->evicts = *word == 0;
  if (const auto word = fields.ReadWord("stop", kStops)) at->stop = static_cast<QueueStop>(*word);
  if (const auto names = fields.Read<Names>("namespaces")) {
    timed.namespaces_of_queue[name] = {names->begin(), names->end()};
  }
  fields.Done();
}

constexpr std::string_view kScaleUps[] = {"None", "Minimum"};

void ReadPool(const std::string& name, const YAML::Node& yaml, TimedWorld& timed) {
  std::vector<PoolView>& pools = timed.world.snapshot.pools;
  auto at = std::ranges::find(pools, name, &PoolView::name);
  if (at == pools.end()) at = pools.insert(at, PoolView{.name = name});
  Fields fields(yaml, "pool " + name);
  fields.ReadTo<std::int64_t>("reservedGpus", at->reserved_gpus);
  fields.ReadTo<std::vector<std::string>>("topologyKeys", at->topology_keys);
  if (const auto word = fields.ReadWord("scaleUp", kScaleUps)) at->requests_nodes = *word == 1;
  fields.ReadTo<bool>("yieldToPending", at->yields);
  fields.Done();
}

// Settings of administrators.
void Configure(Fields& fields, const std::string& queues, TimedWorld& timed) {
  ForEach(fields.Take(queues), queues,
          [&](const std::string& name, const YAML::Node& value) { ReadQueue(name, value, timed); });
  ForEach(fields.Take("pools"), "pools",
          [&](const std::string& name, const YAML::Node& value) { ReadPool(name, value, timed); });
  ForEach(fields.Take("pending"), "pending", [&](const std::string& name, const YAML::Node& value) {
    std::vector<PendingPod>& pending = timed.world.snapshot.pending;
    std::erase_if(pending, [&](const PendingPod& pod) { return pod.name == name; });
    if (value.IsScalar() && value.Scalar() == "gone") return;
    PendingPod pod{
        .name_space = "others", .name = name, .gpus = 1, .since = timed.world.snapshot.now};
    PodNeeds needs;
    Fields of(value, "pod " + name);
    of.ReadTo<std::int64_t>("gpus", pod.gpus);
    of.ReadTo<std::map<std::string, std::string>>("nodeSelector", needs.node_selector);
    of.Done();
    pod.asks.needs = std::make_shared<const PodNeeds>(std::move(needs));
    pending.push_back(pod);
  });
  ForEach(fields.Take("budgets"), "budgets", [&](const std::string& name, const YAML::Node& gpus) {
    std::vector<GpuBudget>& budgets = timed.world.snapshot.budgets;
    std::erase_if(budgets, [&](const GpuBudget& budget) { return budget.name_space == name; });
    budgets.push_back({name, ValueOf<std::int64_t>(gpus, "budget of " + name)});
  });
}

// Jobs.

constexpr std::string_view kPlacements[] = {"Pack", "Spread"};
constexpr std::string_view kReproducibilities[] = {"Bitwise", "Statistical"};

void ReadJob(Fields& fields, JobView& job, TimedWorld::Program& program) {
  if (const auto learners = fields.Take("learners")) {
    const Range range = ReadRange(*learners);
    job.min_learners = range.min;
    job.max_learners = range.max;
  }
  fields.ReadTo<std::string>("queue", job.queue);
  fields.ReadTo<int>("priority", job.priority);
  fields.ReadTo<int>("logicalShards", job.training.logical_shards);
  fields.ReadTo<SpeedCurve>("speeds", job.training.speeds);
  fields.ReadTo<std::int64_t>("aloneSeconds", job.training.alone_seconds);
  fields.ReadTo<int>("holdPercent", job.training.hold_percent);
  fields.ReadTo<int>("minEfficiencyPercent", job.training.min_efficiency);
  if (const auto word = fields.ReadWord("placement", kPlacements)) {
    job.placement = static_cast<PlacementPolicy>(*word);
  }
  if (const auto word = fields.ReadWord("reproducibility", kReproducibilities)) {
    job.training.reproducibility = static_cast<Reproducibility>(*word);
  }
  fields.ReadTo<std::int64_t>("gpusPerLearner", job.needs.resources.gpus);
  fields.ReadTo<std::map<std::string, std::string>>("nodeSelector", job.needs.node_selector);
  fields.ReadTo<std::string>("namespace", job.key.name_space);
  fields.ReadTo<std::int64_t>("attainedGpuSeconds", job.waiting.attained_gpu_seconds);
  const auto seconds = [&](const std::string& key, Seconds& value) {
    if (const auto count = fields.Read<std::int64_t>(key)) value = SecondsOf(*count);
  };
  if (const auto until = fields.Read<std::int64_t>("yieldsUntil")) {
    job.share.yields_until = kStart + SecondsOf(*until);
  }
  seconds("minRuntimeSeconds", job.min_runtime);
  seconds("cooldownSeconds", job.cooldown);
  seconds("startTimeoutSeconds", job.start_timeout);
  fields.ReadTo<int>("asks", job.learners_asked);
  fields.ReadTo<LearnerCount>("starts", program.starts);
  if (const auto runs = fields.Read<std::int64_t>("runs")) program.runs = SecondsOf(*runs);
  fields.Done();
}

// Every size up to 64 learners is then faster than the one before it.
constexpr int kManyShards = 4096;

void SubmitJobs(const std::optional<YAML::Node>& yaml, TimedWorld& timed) {
  ForEach(yaml, "jobs", [&](const std::string& name, const YAML::Node& value) {
    JobOf job(name);
    job.Shards(kManyShards);
    TimedWorld::Program program;
    Fields fields(value, "job " + name);
    ReadJob(fields, job.view, program);
    timed.Submit(job, program);
  });
}

void PlanArrivals(const std::optional<YAML::Node>& yaml, TimedWorld& timed) {
  ForEach(yaml, "arrivals", [&](const std::string& name, const YAML::Node& value) {
    Fields fields(value, "arrivals " + name);
    const Seconds every{fields.Read<std::int64_t>("every").value_or(60)};
    const int count = fields.Read<int>("count").value_or(1);
    JobOf job(name);
    job.Shards(kManyShards);
    TimedWorld::Program program;
    ReadJob(fields, job.view, program);
    for (int number = 1; number <= count; ++number) {
      job.view.key.name = Format("{}-{}", name, number);
      job.view.key.uid = "uid-" + job.view.key.name;
      timed.SubmitAt(timed.world.snapshot.now + number * every, job, program);
    }
  });
}

void ChangeJobs(const std::optional<YAML::Node>& yaml, TimedWorld& timed) {
  ForEach(yaml, "jobs", [&](const std::string& name, const YAML::Node& value) {
    Fields fields(value, "job " + name);
    JobView& job = timed.Job(name);
    ReadJob(fields, job, timed.programs.at(name));
  });
}

}  // namespace

void SetUp(Fields& scenario, TimedWorld& timed) {
  if (const auto nodes = scenario.Take("nodes")) timed.world.snapshot.nodes = ReadNodes(*nodes);
  Configure(scenario, "queues", timed);
  SubmitJobs(scenario.Take("jobs"), timed);
  PlanArrivals(scenario.Take("arrivals"), timed);
}

void LetHappen(Fields& step, TimedWorld& timed) {
  if (const auto after = step.Read<std::int64_t>("after")) {
    timed.PassUntil(timed.world.snapshot.now + Seconds{*after});
  }
  ChangeNodes(step.Take("nodes"), timed);
  Configure(step, "configure", timed);
  for (const std::string& queue : step.Read<Names>("deleteQueues").value_or(Names{})) {
    std::erase_if(timed.world.snapshot.queues,
                  [&](const QueueView& view) { return view.name == queue; });
    timed.namespaces_of_queue.erase(queue);
  }
  for (const std::string& job : step.Read<Names>("fail").value_or(Names{})) timed.EndLearners(job);
  for (const std::string& job : step.Read<Names>("finish").value_or(Names{})) {
    timed.Job(job).finished = true;
    timed.EndLearners(job);
  }
  for (const std::string& job : step.Read<Names>("suspend").value_or(Names{})) {
    timed.Job(job).suspended = true;
  }
  for (const std::string& job : step.Read<Names>("resume").value_or(Names{})) {
    timed.Job(job).suspended = false;
  }
  ChangeJobs(step.Take("change"), timed);
  SubmitJobs(step.Take("submit"), timed);
  PlanArrivals(step.Take("arrivals"), timed);
}

}  // namespace pliant::planner
