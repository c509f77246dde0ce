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
  double goodput_alone = 0;       // with one GPU
  std::optional<std::int64_t> started;
  std::optional<std::int64_t> completed;
  JobOutcome outcome;  // without these two
};

void MeasureGoodput(RunningJob& job) {
  const Profile& profile = *job.view.profile;
  const int epoch = job.view.training.epoch;
  const int batch = job.view.spec->batch;
  job.goodput = Goodput(profile, epoch, PlacementOf(job.view.held), batch);
  job.goodput_alone = Goodput(profile, epoch, Placement{1}, batch);
}

void AddSize(RunningJob& job, std::int64_t seconds, int gpus) {
  std::vector<SizeAt>& sizes = job.outcome.sizes;
  if (gpus == (sizes.empty() ? 0 : sizes.back().gpus)) return;
  sizes.push_back({.at = seconds * 1000, .gpus = gpus, .batch = job.view.spec->batch});
}

// Trains from `begin` for `seconds`.
void Step(RunningJob& job, std::int64_t begin, std::int64_t seconds) {
  if (job.view.held.empty() || job.completed) return;
  job.view.held_seconds += seconds;
  const std::int64_t delay = std::min(job.restart_left, seconds);
  job.restart_left -= delay;
  std::int64_t used = delay;
  if (used < seconds && !job.started) job.started = begin + used;
  while (used < seconds && !job.completed) {
    const Advanced step =
        Advance(*job.view.profile, job.view.training, job.goodput, seconds - used);
    used += step.seconds;
    job.view.training = step.training;
    job.outcome.useful_gpu_seconds +=
        static_cast<double>(step.seconds) * job.goodput / job.goodput_alone;
    if (!step.ended_epoch) continue;
    if (IsDone(*job.view.profile, job.view.training)) {
      job.completed = begin + used;
      AddSize(job, *job.completed, 0);
    } else {
      MeasureGoodput(job);
    }
  }
  job.outcome.gpu_seconds += static_cast<double>(used) * GpusOf(job.view.held);
}

bool ShareANode(const Allocation& one, const Allocation& other) {
  return std::ranges::any_of(
      one, [&](int node) { return std::ranges::contains(other, node, &NodeShare::node); },
      &NodeShare::node);
}

void Give(RunningJob& job, Allocation allocation, std::int64_t now, std::int64_t restart_seconds) {
  if (allocation == job.view.held) return;
  const Allocation before = std::exchange(job.view.held, std::move(allocation));
  AddSize(job, now, GpusOf(job.view.held));
  if (job.view.held.empty()) return;
  job.restart_left = restart_seconds;
  ++job.outcome.starts;
  if (!before.empty()) {
    ++job.outcome.resizes;
    if (!ShareANode(before, job.view.held)) ++job.outcome.moves;
  }
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
    Give(jobs[view.jobs[at].index], std::move(allocations[at]), now, options.restart_seconds);
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
          Format("the job {} is not done after {} s; use more GPUs, or submit it earlier",
                 late->view.spec->name, now));
    }
    for (RunningJob& job : running) Step(job, now, options.round_seconds);
    now += options.round_seconds;
    Plan(running, now, options, policy);
  }
  std::vector<JobOutcome> outcomes;
  for (RunningJob& job : running) {
    job.outcome.completed_seconds = *job.completed;
    job.outcome.started_seconds = *job.started;
    outcomes.push_back(std::move(job.outcome));
  }
  return outcomes;
}

}  // namespace pliant::simulator
