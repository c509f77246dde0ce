#include <algorithm>
#include <cmath>
#include <cstddef>
#include <iterator>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "base/format.h"
#include "operator/planner/plan.h"
#include "simulator/events/curve_work.h"
#include "simulator/events/event_engine.h"

// How far the estimated ends of jobs are from their ends in a simulated run.
namespace pliant::simulator {
namespace {

struct Estimate {
  std::int64_t made = 0;  // milliseconds since the beginning of the run
  std::int64_t end = 0;
};
using Estimates = std::map<std::string, std::vector<Estimate>>;  // by job

// Each learner adds less than the one before, and each node costs something.
planner::SpeedCurve DrawCurve(std::mt19937_64& random) {
  const double kept = 0.7 + 0.29 * DrawUniform(random);
  const double node_costs = 0.5 * DrawUniform(random);
  planner::SpeedCurve curve;
  double speed = 0;
  double more = 1000;
  for (int size = 1; size <= 16; ++size, more *= kept) {
    speed += more;
    const int nodes = (size + 3) / 4;
    curve.push_back(static_cast<int>(speed / (1 + node_costs * (nodes - 1))));
  }
  return curve;
}

// `jobs` at once on 16 nodes of 4 GPUs.
RunInput DrawRun(int jobs, planner::QueuePolicy policy, std::mt19937_64& random) {
  RunInput input{.queues = {{.policy = policy}}};
  for (int index = 0; index < 16; ++index) {
    planner::NodeView node{.name = Format("n{:02}", index)};
    node.allocatable.gpus = 4;
    input.nodes.push_back(node);
  }
  for (int index = 0; index < jobs; ++index) {
    // From 10 minutes to 10 hours with one learner.
    const double seconds = 600 * std::pow(60, DrawUniform(random));
    SimulatedJob job{.work = std::make_shared<CurveWork>(DrawCurve(random), seconds, 16)};
    const std::string name = Format("job-{:02}", index);
    job.view.key = {"team-a", name, name};
    job.view.max_learners = 16;
    job.view.training.reproducibility = planner::Reproducibility::kStatistical;
    job.view.training.logical_shards = 16;
    job.view.needs.resources.gpus = 1;
    job.view.cooldown = planner::Seconds(0);
    input.jobs.push_back(std::move(job));
  }
  return input;
}

// |estimated - real| time from the middle of a job's run to its end, in parts of the real one, by
// the last plan before the middle.
std::vector<double> ErrorsAtMidRun(const RunRecord& run, const Estimates& estimates) {
  std::vector<double> errors;
  for (const JobRecord& job : run.jobs) {
    const std::int64_t middle = (*job.started + *job.completed) / 2;
    const std::vector<Estimate>& of_job = estimates.at(job.name);
    const auto after = std::ranges::upper_bound(of_job, middle, {}, &Estimate::made);
    if (after == of_job.begin()) continue;  // nothing was known
    const auto error = static_cast<double>(std::abs(std::prev(after)->end - *job.completed));
    errors.push_back(error / static_cast<double>(*job.completed - middle));
  }
  return errors;
}

std::vector<double> Errors(int jobs, planner::QueuePolicy policy, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  const RunInput input = DrawRun(jobs, policy, random);
  Estimates estimates;
  RunOptions options;
  options.make_plan = [&](const planner::ClusterSnapshot& snapshot, const planner::Policy& rules,
                          planner::FitMemory& memory) {
    planner::Plan plan = planner::MakePlan(snapshot, rules, memory);
    for (const planner::Decision& decision : plan.decisions) {
      if (!decision.ends_at) continue;
      estimates[decision.job.name].push_back({FromWall(snapshot.now), FromWall(*decision.ends_at)});
    }
    return plan;
  };
  return ErrorsAtMidRun(RunEvents(input, options), estimates);
}

double Quantile(std::vector<double> values, double part) {
  std::ranges::sort(values);
  return values[static_cast<std::size_t>(part * static_cast<double>(values.size() - 1))];
}

// From jobs that never have neighbors to a long queue. No error has another cause than learners
// that start while others train, and whole seconds.
TEST(EstimatedEnds, AtMidRunTheyAreKnown) {
  for (const auto policy : {planner::QueuePolicy::kFairShare, planner::QueuePolicy::kThroughput}) {
    for (const int jobs : {1, 8, 32, 64, 160}) {
      SCOPED_TRACE(Format("{} jobs, {}", jobs, ToString(policy)));
      std::vector<double> errors;
      for (std::uint64_t seed = 1; seed <= 4; ++seed) {
        std::ranges::copy(Errors(jobs, policy, seed), std::back_inserter(errors));
      }
      ASSERT_EQ(errors.size(), static_cast<std::size_t>(4 * jobs));
      EXPECT_LE(Quantile(errors, 0.9), 0.03);
      EXPECT_LE(Quantile(errors, 1), 0.2);
    }
  }
}

}  // namespace
}  // namespace pliant::simulator
