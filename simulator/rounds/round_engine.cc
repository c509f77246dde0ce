#include "simulator/rounds/round_engine.h"

#include <algorithm>
#include <cstddef>
#include <functional>
#include <numeric>
#include <optional>
#include <utility>

#include "base/check.h"
#include "base/format.h"
#include "simulator/model/job_model.h"

namespace pliant::simulator {
namespace {

struct RunningJob {
  RoundJob view;
  std::int64_t restart_left = 0;  // seconds
  double goodput = 0;             // with these GPUs in this epoch
  std::optional<std::int64_t> completed;
  int starts = 0;
};

void MeasureGoodput(RunningJob& job) {
  job.goodput = Goodput(*job.view.profile, job.view.training.epoch, PlacementOf(job.view.held),
                        job.view.spec->batch);
}

// Trains from `begin` for `seconds`.
void Step(RunningJob& job, std::int64_t begin, std::int64_t seconds) {
  if (job.view.held.empty() || job.completed) return;
  job.view.held_seconds += seconds;
  const std::int64_t delay = std::min(job.restart_left, seconds);
  job.restart_left -= delay;
  std::int64_t used = delay;
  while (used < seconds) {
    const Advanced step =
        Advance(*job.view.profile, job.view.training, job.goodput, seconds - used);
    used += step.seconds;
    job.view.training = step.training;
    if (!step.ended_epoch) continue;
    if (IsDone(*job.view.profile, job.view.training)) {
      job.completed = begin + used;
      return;
    }
    MeasureGoodput(job);
  }
}

void Give(RunningJob& job, Allocation allocation, std::int64_t restart_seconds) {
  if (allocation == job.view.held) return;
  job.view.held = std::move(allocation);
  if (job.view.held.empty()) return;
  job.restart_left = restart_seconds;
  ++job.starts;
  MeasureGoodput(job);
}

void CheckFits(const RoundView& view, const std::vector<Allocation>& allocations) {
  CHECK(allocations.size() == view.jobs.size(), "a policy answers for each job");
  std::vector<int> left = view.node_gpus;
  for (const Allocation& allocation : allocations) {
    for (const NodeShare& share : allocation) {
      left[static_cast<std::size_t>(share.node)] -= share.gpus;
    }
  }
  CHECK(std::ranges::min(left) >= 0, "a policy allocates each GPU once");
}

void Plan(std::vector<RunningJob>& jobs, std::int64_t now, const RoundOptions& options,
          RoundPolicy& policy) {
  RoundView view{
      .now_seconds = now,
      .node_gpus = std::vector<int>(static_cast<std::size_t>(options.nodes), options.gpus_per_node),
      .jobs = {}};
  for (const RunningJob& job : jobs) {
    if (job.view.spec->submitted_seconds <= now && !job.completed) view.jobs.push_back(job.view);
  }
  if (view.jobs.empty()) return;
  std::vector<Allocation> allocations = policy.Allocate(view);
  CheckFits(view, allocations);
  for (std::size_t at = 0; at < view.jobs.size(); ++at) {
    Give(jobs[view.jobs[at].index], std::move(allocations[at]), options.restart_seconds);
  }
}

bool IsCompleted(const RunningJob& job) { return job.completed.has_value(); }

}  // namespace

int GpusOf(const Allocation& allocation) {
  return std::transform_reduce(allocation.begin(), allocation.end(), 0, std::plus<>(),
                               [](const NodeShare& share) { return share.gpus; });
}

Placement PlacementOf(const Allocation& allocation) {
  Placement placement;
  for (const NodeShare& share : allocation) placement.push_back(share.gpus);
  return placement;
}

Result<std::vector<JobOutcome>> RunRounds(const Profiles& profiles, std::span<const JobSpec> jobs,
                                          const RoundOptions& options, RoundPolicy& policy) {
  CHECK(options.round_seconds > 0, "time passes");
  std::vector<RunningJob> running(jobs.size());
  for (std::size_t index = 0; index < jobs.size(); ++index) {
    const JobSpec& spec = jobs[index];
    if (spec.gpus > std::int64_t{options.nodes} * options.gpus_per_node) {
      return Invalid(Format("the job {} asks for {} GPUs, and there are {} nodes of {}; add nodes",
                            spec.name, spec.gpus, options.nodes, options.gpus_per_node));
    }
    RoundJob& view = running[index].view;
    view.index = index;
    view.spec = &spec;
    view.profile = &profiles[spec.application];
  }
  for (std::int64_t now = 0; !std::ranges::all_of(running, IsCompleted);) {
    if (now >= options.max_seconds) {
      const auto late = std::ranges::find_if_not(running, IsCompleted);
      return Invalid(
          Format("the job {} is not done after {} s; raise max_seconds, or use more GPUs",
                 late->view.spec->name, now));
    }
    for (RunningJob& job : running) Step(job, now, options.round_seconds);
    now += options.round_seconds;
    Plan(running, now, options, policy);
  }
  std::vector<JobOutcome> outcomes;
  for (const RunningJob& job : running) {
    outcomes.push_back({.completed_seconds = *job.completed, .starts = job.starts});
  }
  return outcomes;
}

}  // namespace pliant::simulator
