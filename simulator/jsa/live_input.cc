#include "simulator/jsa/live_input.h"

#include <cstddef>
#include <memory>
#include <string>
#include <utility>

#include "base/format.h"
#include "operator/planner/cluster_snapshot.h"
#include "simulator/jsa/samples_work.h"

namespace pliant::simulator {
namespace {

constexpr int kPhases = 10;

}  // namespace

RunInput LiveInput(const Profiles& profiles, std::span<const SamplesJob> jobs, int nodes,
                   const SampleRules& rules) {
  RunInput input{.queues = {{.policy = planner::QueuePolicy::kThroughput}}};
  for (int index = 0; index < nodes; ++index) {
    planner::NodeView node{.name = Format("n{:04}", index)};
    node.allocatable.gpus = rules.gpus_per_node;
    input.nodes.push_back(std::move(node));
  }
  for (std::size_t index = 0; index < jobs.size(); ++index) {
    const Profile& profile = profiles[jobs[index].application];
    SimulatedJob job{
        .submitted = jobs[index].submitted,
        .work = std::make_shared<SamplesWork>(profile, jobs[index].samples, rules, kPhases),
        .application = profile.application()};
    const std::string name = Format("job-{:04}", index);
    job.view.key = {.name_space = "jsa", .name = name, .uid = name};
    job.view.max_learners = rules.max_gpus;
    // Every number of learners computes as many samples as another.
    job.view.training.reproducibility = planner::Reproducibility::kStatistical;
    job.view.training.logical_shards = rules.max_gpus;
    job.view.needs.resources.gpus = 1;
    job.view.cooldown = planner::Seconds(0);
    input.jobs.push_back(std::move(job));
  }
  return input;
}

}  // namespace pliant::simulator
