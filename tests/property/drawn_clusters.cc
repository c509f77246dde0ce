#include "tests/property/drawn_clusters.h"

#include <algorithm>
#include <map>
#include <string>
#include <utility>

#include <rapidcheck.h>

#include "base/format.h"
#include "tests/unit/planner/builders.h"

namespace pliant::planner {

int Draw(int from, int to_inclusive) {
  return *rc::gen::resize(rc::kNominalSize, rc::gen::inRange(from, to_inclusive + 1));
}
bool DrawOneIn(int times) { return Draw(1, times) == 1; }

const PoolView kPoolWithRacks{.topology_keys = {"zone", "rack"}};

void DrawDomains(NodeView& node) {
  for (const std::string& key : kPoolWithRacks.topology_keys) {
    if (!DrawOneIn(4)) node.labels[key] = std::to_string(Draw(1, 2));
  }
}

namespace {

constexpr const char* kPools[] = {"fast", "slow"};

}  // namespace

void DrawProducts(ClusterSnapshot& snapshot) {
  for (NodeView& node : snapshot.nodes) {
    if (!DrawOneIn(4)) node.labels[kGpuProductLabel] = std::to_string(Draw(1, 2));
    if (DrawOneIn(4)) node.labels[kGpuDriverLabel] = std::to_string(Draw(1, 2));
  }
  for (JobView& job : snapshot.jobs) {
    if (DrawOneIn(4))
      job.training.reproducibility = Reproducibility::kStatistical;
    else if (DrawOneIn(4))
      job.training.gpu_product = std::to_string(Draw(1, 2));
  }
}

ClusterSnapshot DrawCluster(Disorder disorder) {
  ClusterSnapshot snapshot{.now = kStart + Seconds{3600}, .pools = {kPoolWithRacks}};
  std::map<std::string, int> free;  // GPUs of usable nodes
  const int nodes = Draw(0, 5);
  for (int index = 0; index < nodes; ++index) {
    NodeView node = GpuNode(Format("n{}", index), Draw(0, 6));
    node.labels["pool"] = kPools[Draw(0, 1)];
    DrawDomains(node);
    node.allocatable.cpu_millis = Draw(1, 8) * 1000;
    node.ready = !DrawOneIn(8);
    node.schedulable = !DrawOneIn(8);
    if (DrawOneIn(4)) node.foreign.gpus = Draw(0, 2);
    snapshot.nodes.push_back(node);
    if (node.ready && node.schedulable) {
      free[node.name] =
          static_cast<int>(std::max<std::int64_t>(node.allocatable.gpus - node.foreign.gpus, 0));
    }
  }
  const int jobs = Draw(0, 7);
  for (int index = 0; index < jobs; ++index) {
    const int min = disorder == Disorder::kTidy ? 1 : Draw(1, 4);
    JobOf job(Format("j{}", index), min, min + Draw(0, 8));
    job.Priority(Draw(1, 20)).Shards(1 << Draw(2, 5)).Submitted(Seconds{Draw(0, 3)});
    job.Attained(Draw(0, 100));
    if (disorder == Disorder::kAny) {
      if (DrawOneIn(3)) job.Needs(Draw(1, 3) * 1000, kGiB);
      if (DrawOneIn(6)) job.GpusEach(2);
      if (DrawOneIn(3)) job.OnlyOn(kPools[Draw(0, 1)]);
      if (DrawOneIn(4)) job.view.placement = PlacementPolicy::kSpread;
      if (DrawOneIn(8)) job.view.avoided = {{"n0", kStart + Seconds{4000}}};
    }
    if (DrawOneIn(8)) job.Suspended();
    if (DrawOneIn(4)) job.Resized(Seconds{3590});
    if (DrawOneIn(8)) job.Started(Seconds{3590}, Seconds{60});
    if (DrawOneIn(8)) job.view.share.below_minimum_since = kStart + Seconds{Draw(3200, 3599)};
    if (DrawOneIn(8))
      job.view.cap = DemandCap{.learners = Draw(0, 3), .until = kStart + Seconds{Draw(3500, 3700)}};
    const int groups = Draw(0, 3);
    for (int group = 0; group < groups; ++group) {
      const std::string node = Format("n{}", Draw(0, 5));
      const auto state = static_cast<LearnerState>(Draw(0, 3));
      int learners = Draw(1, 3);
      if (disorder == Disorder::kTidy && state != LearnerState::kGated && free.contains(node)) {
        learners = std::min(learners, free[node]);
        free[node] -= learners;
      }
      job.Has(learners, node, state, Seconds{Draw(3400, 3600)});
    }
    snapshot.jobs.push_back(job.view);
  }
  if (disorder == Disorder::kAny && DrawOneIn(2)) DrawProducts(snapshot);
  if (disorder == Disorder::kAny && DrawOneIn(3)) DrawSpeeds(snapshot, Curves::kAny);
  return snapshot;
}

ClusterSnapshot DrawPlainCluster(int min_jobs, Sizes sizes) {
  ClusterSnapshot snapshot{.now = kStart + Seconds{3600}, .nodes = {}, .jobs = {}};
  const int jobs = Draw(min_jobs, 6);
  const int gpus = Draw(jobs, 24);
  snapshot.nodes = Nodes(1, gpus);
  int free = gpus;
  for (int index = 0; index < jobs; ++index) {
    JobOf job(Format("j{}", index), 1, Draw(1, 20));
    job.Priority(Draw(1, 20)).Submitted(Seconds{Draw(0, 3)});
    job.Shards(sizes == Sizes::kAllUseful ? 4096 : 1 << Draw(3, 12));
    const int held = std::min(free, Draw(0, 3));
    free -= held;
    job.Has(held, "n00");
    snapshot.jobs.push_back(job.view);
  }
  return snapshot;
}

namespace {

SpeedCurve DrawCurve(int sizes, Curves curves) {
  SpeedCurve curve{1000};
  int more = 1000;
  while (std::ssize(curve) < sizes) {
    if (curves == Curves::kConcave) {
      more = Draw(0, more);
      curve.push_back(curve.back() + more);
    } else {
      curve.push_back(std::max(curve.back() + Draw(-600, 1000), 1));
    }
  }
  return curve;
}

}  // namespace

void DrawSpeeds(ClusterSnapshot& snapshot, Curves curves, bool of_all_jobs) {
  snapshot.queues = {{.policy = QueuePolicy::kThroughput, .favors_short_jobs = DrawOneIn(2)}};
  for (JobView& job : snapshot.jobs) {
    if (of_all_jobs || !DrawOneIn(3)) {
      // The curve may end before maxLearners.
      job.training.speeds = DrawCurve(Draw(1, job.max_learners + 2), curves);
    }
    if (DrawOneIn(2)) job.training.alone_seconds = 1 << Draw(1, 20);
  }
}

std::vector<Plan> PlansUntilRest(ClusterSnapshot snapshot, const Policy& policy) {
  constexpr std::size_t kMaxPlansUntilRest = 8;
  World world({});
  world.snapshot = std::move(snapshot);
  world.policy = policy;
  for (JobView& job : world.snapshot.jobs) {
    job.cooldown = Seconds{0};
    job.min_runtime = Seconds{0};
  }
  const bool leavers_end = DrawOneIn(2);
  RC_LOG() << Describe(world.snapshot);
  std::vector<Plan> plans;
  while (true) {
    Plan plan = world.MakePlan();
    for (const Decision& decision : plan.decisions) {
      RC_LOG() << plans.size() << ": " << decision << "\n";
    }
    if (std::ranges::all_of(plan.decisions, &Decision::ChangesNothing)) return plans;
    RC_ASSERT(plans.size() < kMaxPlansUntilRest);
    world.CarryOut(plan);
    if (leavers_end) world.EndLeavers();
    plans.push_back(std::move(plan));
  }
}

}  // namespace pliant::planner
