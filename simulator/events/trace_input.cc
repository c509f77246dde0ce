#include "simulator/events/trace_input.h"

#include <algorithm>
#include <cstddef>
#include <map>
#include <memory>
#include <utility>

#include "base/format.h"

namespace pliant::simulator {

RunInput InputOf(const Profiles& profiles, std::span<const JobSpec> jobs,
                 const TraceOptions& options) {
  RunInput input{.queues = {options.queue}};
  for (int index = 0; index < options.nodes; ++index) {
    planner::NodeView node{.name = Format("n{:04}", index)};
    node.allocatable.gpus = options.gpus_per_node;
    input.nodes.push_back(std::move(node));
  }
  const int gpus = options.nodes * options.gpus_per_node;
  std::map<std::size_t, std::shared_ptr<const PackedTimes>> times;
  for (const JobSpec& spec : jobs) {
    const Profile& profile = profiles[spec.application];
    auto& packed = times[spec.application];
    if (packed == nullptr) {
      packed = std::make_shared<PackedTimes>(
          profile, options.gpus_per_node, std::min(gpus, profile.MaxLearners(profile.max_batch())));
    }
    const bool is_fixed = options.batch == BatchRule::kFixed;
    const int samples = is_fixed ? spec.batch : profile.max_batch();
    const int max = std::min(gpus, profile.MaxLearners(samples));
    SimulatedJob job{
        .submitted = spec.submitted_seconds * 1000,
        .work = std::make_shared<ProfiledWork>(profile, packed, spec.batch, options.batch, max),
        .application = profile.application()};
    job.view.key = {.name_space = "trace", .name = spec.name, .uid = spec.name};
    job.view.queue = options.queue.name;
    job.view.max_learners = max;
    // Every number of learners computes as many samples as another.
    job.view.reproducibility = planner::Reproducibility::kStatistical;
    job.view.logical_shards = max;
    job.view.needs.resources.gpus = 1;
    const bool by_speed = options.queue.policy == planner::QueuePolicy::kThroughput;
    job.view.cooldown = planner::Seconds(by_speed ? 0 : 30);
    input.jobs.push_back(std::move(job));
  }
  return input;
}

}  // namespace pliant::simulator
