#include <algorithm>
#include <cmath>
#include <map>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#include "operator/planner/plan.h"
#include "operator/planner/sizes.h"
#include "operator/planner/speed_curve.h"
#include "tests/property/drawn_clusters.h"
#include "tests/unit/planner/builders.h"

// Properties of the plans of queues that share by speed.
namespace pliant::planner {
namespace {

std::map<std::string, std::int64_t> Entitlements(const Plan& plan) {
  std::map<std::string, std::int64_t> gpus;
  for (const Decision& decision : plan.decisions) gpus[decision.job.name] = decision.entitled_gpus;
  return gpus;
}

// Speeds say when a job ends, in queues of all policies.
Plan WithoutEstimates(Plan plan) {
  for (Decision& decision : plan.decisions) {
    decision.starts_at.reset();
    decision.ends_at.reset();
  }
  return plan;
}

SpeedCurve LinearCurve(int sizes, int speed) {
  SpeedCurve curve;
  for (int size = 1; size <= sizes; ++size) curve.push_back(size * speed);
  return curve;
}

RC_GTEST_PROP(ThroughputProperty, SpeedsInProportionShareAsWithFairShare, ()) {
  ClusterSnapshot snapshot = DrawCluster(DrawOneIn(2) ? Disorder::kTidy : Disorder::kAny);
  for (JobView& job : snapshot.jobs) job.training.speeds.clear();
  snapshot.queues = {{}};
  const Plan fair = WithoutEstimates(MakePlan(snapshot, {}));
  snapshot.queues[0].policy = QueuePolicy::kThroughput;
  for (JobView& job : snapshot.jobs) {
    if (DrawOneIn(2))
      job.training.speeds = LinearCurve(job.max_learners + Draw(0, 2), Draw(1, 2000));
  }
  RC_ASSERT(WithoutEstimates(MakePlan(snapshot, {})) == fair);
}

RC_GTEST_PROP(ThroughputProperty, SpeedsChangeNothingWithOtherPolicies, ()) {
  ClusterSnapshot snapshot = DrawCluster();
  DrawSpeeds(snapshot, Curves::kAny);
  snapshot.queues[0].policy = static_cast<QueuePolicy>(Draw(0, 2));
  const Plan with = WithoutEstimates(MakePlan(snapshot, {}));
  for (JobView& job : snapshot.jobs) job.training.speeds.clear();
  RC_ASSERT(WithoutEstimates(MakePlan(snapshot, {})) == with);
}

RC_GTEST_PROP(ThroughputProperty, ASecondPlanChangesNothing, ()) {
  ClusterSnapshot snapshot = DrawPlainCluster();
  DrawSpeeds(snapshot, DrawOneIn(2) ? Curves::kConcave : Curves::kAny);
  RC_ASSERT(PlansUntilRest(snapshot, {.hold_percent = 0}).size() <= 1u);
  // A job claims what it got with more weight afterwards.
  RC_ASSERT(PlansUntilRest(snapshot).size() <= 2u);
}

// The first plan also counts GPUs that learners hold on lost nodes. Once these have left, another
// size may be the best one.
RC_GTEST_PROP(ThroughputProperty, PlansComeToRest, ()) {
  ClusterSnapshot snapshot = DrawCluster(Disorder::kTidy);
  DrawSpeeds(snapshot, Curves::kAny);
  RC_ASSERT(PlansUntilRest(snapshot).size() <= 3u);
}

RC_GTEST_PROP(ThroughputProperty, PlansOfAnyClusterComeToRest, ()) {
  ClusterSnapshot snapshot = DrawCluster(Disorder::kAny);
  DrawSpeeds(snapshot, Curves::kAny);
  PlansUntilRest(snapshot);
}

RC_GTEST_PROP(ThroughputProperty, NoSizeIsLessEfficientThanItsJobAllows, ()) {
  ClusterSnapshot snapshot = DrawCluster(Disorder::kAny);
  DrawSpeeds(snapshot, Curves::kAny);
  snapshot.queues[0].policy = static_cast<QueuePolicy>(Draw(0, 3));
  for (JobView& job : snapshot.jobs) job.training.min_efficiency = Draw(0, 100);
  const Plan plan = MakePlan(snapshot, {});
  for (const JobView& job : snapshot.jobs) {
    RC_ASSERT(IsEfficient(job, DecisionOn(plan, job.key.name).to));
  }
  PlansUntilRest(snapshot);
}

// The learners that the plan gives each job, in the order of the snapshot.
std::vector<int> SizesOf(const ClusterSnapshot& snapshot, const Plan& plan) {
  std::vector<int> sizes;
  for (const JobView& job : snapshot.jobs) {
    sizes.push_back(DecisionOn(plan, job.key.name).to);
  }
  return sizes;
}

RC_GTEST_PROP(ThroughputProperty, NoGpuIsIdleThatMakesAJobFaster, ()) {
  ClusterSnapshot snapshot = DrawPlainCluster();
  DrawSpeeds(snapshot, Curves::kAny, /*of_all_jobs=*/true);
  const std::vector<int> sizes = SizesOf(snapshot, MakePlan(snapshot, {}));
  int left = static_cast<int>(snapshot.nodes[0].allocatable.gpus);
  for (const int size : sizes) left -= size;
  for (std::size_t index = 0; index < sizes.size(); ++index) {
    const JobView& job = snapshot.jobs[index];
    if (IsLinear(job.training.speeds, job.max_learners)) continue;
    const int most = std::min(sizes[index] + left, job.max_learners);
    RC_ASSERT(FastestSize(job.training.speeds, sizes[index], most) == sizes[index]);
    // Nor does it have more than it uses.
    RC_ASSERT(FastestSize(job.training.speeds, job.min_learners, sizes[index]) == sizes[index]);
  }
}

// The most that Σ weight · value(size) can be, by dynamic programming.
// values[job][size - 1], of jobs that have one learner or more.
double BestSum(const std::vector<std::vector<double>>& values, int gpus) {
  std::vector<double> best(static_cast<std::size_t>(gpus) + 1, 0.0);
  for (const std::vector<double>& of_job : values) {
    std::vector<double> next(best.size(), -INFINITY);
    for (std::size_t total = 0; total < best.size(); ++total) {
      for (std::size_t size = 1; size <= of_job.size() && size <= total; ++size) {
        next[total] = std::max(next[total], best[total - size] + of_job[size - 1]);
      }
    }
    best = std::move(next);
  }
  return *std::ranges::max_element(best);
}

// A cluster without history, in which all jobs have curves and equal minimums of 1.
ClusterSnapshot DrawFreshCluster(Curves curves) {
  ClusterSnapshot snapshot = DrawPlainCluster(1);
  DrawSpeeds(snapshot, curves, /*of_all_jobs=*/true);
  snapshot.queues[0].favors_short_jobs = false;
  for (JobView& job : snapshot.jobs) {
    job.learners.clear();
    job.share.desired = 0;
  }
  return snapshot;
}

// 2 · (b - a) / (b + a), which is nearly ln(b / a): what the quotients of the rule add up to.
double Gain(double from, double to) { return 2 * (to - from) / (to + from); }

RC_GTEST_PROP(ThroughputProperty, ConcaveSpeedsAreSharedOptimally, ()) {
  const ClusterSnapshot snapshot = DrawFreshCluster(Curves::kConcave);
  const std::vector<int> sizes = SizesOf(snapshot, MakePlan(snapshot, {}));
  std::vector<std::vector<double>> values;
  double sum = 0;
  for (std::size_t index = 0; index < sizes.size(); ++index) {
    const JobView& job = snapshot.jobs[index];
    std::vector<double>& of_job = values.emplace_back(1, 0.0);
    for (int size = 2; size <= job.max_learners; ++size) {
      of_job.push_back(of_job.back() + job.priority * Gain(SpeedWith(job.training.speeds, size - 1),
                                                           SpeedWith(job.training.speeds, size)));
    }
    sum += of_job[static_cast<std::size_t>(sizes[index]) - 1];
  }
  const double best = BestSum(values, static_cast<int>(snapshot.nodes[0].allocatable.gpus));
  RC_ASSERT(std::abs(best - sum) <= 1e-9 * (1 + best));
}

// The sum of weight · ln speed is below its maximum by no more than the worth of one jump to a
// larger size: the one that did not fit.
RC_GTEST_PROP(ThroughputProperty, AtMostOneJumpIsLostToTheOptimum, ()) {
  const ClusterSnapshot snapshot = DrawFreshCluster(Curves::kAny);
  const std::vector<int> sizes = SizesOf(snapshot, MakePlan(snapshot, {}));
  std::vector<std::vector<double>> values;
  double sum = 0;
  double jump = 0;
  for (std::size_t index = 0; index < sizes.size(); ++index) {
    const JobView& job = snapshot.jobs[index];
    const auto value = [&](int size) {
      return job.priority * std::log(SpeedWith(job.training.speeds, size));
    };
    std::vector<double>& of_job = values.emplace_back();
    for (int size = 1; size <= job.max_learners; ++size) of_job.push_back(value(size));
    sum += value(sizes[index]);
    int from = 1;
    while (const auto larger = BestLargerSize(job.training.speeds, from, job.max_learners)) {
      jump = std::max(jump, value(larger->to) - value(from));
      from = larger->to;
    }
  }
  const double best = BestSum(values, static_cast<int>(snapshot.nodes[0].allocatable.gpus));
  RC_LOG() << Describe(snapshot) << "best " << best << ", sum " << sum << ", jump " << jump;
  RC_ASSERT(sum >= best - jump - 1e-9);
}

RC_GTEST_PROP(ThroughputProperty, NobodyLosesWhenAGpuIsAdded, ()) {
  ClusterSnapshot snapshot = DrawPlainCluster();
  DrawSpeeds(snapshot, Curves::kConcave);
  const auto before = Entitlements(MakePlan(snapshot, {}));
  ++snapshot.nodes[0].allocatable.gpus;
  const auto after = Entitlements(MakePlan(snapshot, {}));
  for (const auto& [job, gpus] : before) RC_ASSERT(after.at(job) >= gpus);
}

RC_GTEST_PROP(ThroughputProperty, AHigherPriorityGivesNothingToBystanders, ()) {
  ClusterSnapshot snapshot = DrawPlainCluster();
  DrawSpeeds(snapshot, Curves::kConcave);
  const auto before = Entitlements(MakePlan(snapshot, {}));
  JobView& raised =
      snapshot.jobs[static_cast<std::size_t>(Draw(0, static_cast<int>(snapshot.jobs.size()) - 1))];
  raised.priority += Draw(1, 30);
  const auto after = Entitlements(MakePlan(snapshot, {}));
  for (const auto& [job, gpus] : before) {
    if (job == raised.key.name) {
      RC_ASSERT(after.at(job) >= gpus);
    } else {
      RC_ASSERT(after.at(job) <= gpus);
    }
  }
}

}  // namespace
}  // namespace pliant::planner
