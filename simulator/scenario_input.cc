#include "simulator/scenario_input.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <variant>

#include "base/format.h"
#include "base/overloaded.h"
#include "simulator/inputs/scenario_jobs.h"

namespace pliant::simulator {
namespace {

// That of jobs that do not set it. Shares by speed have the reluctance of the policy instead.
constexpr planner::Seconds kCooldown{30};

std::vector<planner::QueueView> QueuesOf(const Scenario& scenario, const InputOptions& options) {
  std::vector<planner::QueueView> queues = scenario.queues;
  if (!std::ranges::contains(queues, planner::kBuiltInQueue, &planner::QueueView::name)) {
    queues.emplace_back();
  }
  for (planner::QueueView& queue : queues) {
    queue.policy = options.policy.value_or(queue.policy);
    queue.favors_short_jobs = options.favors_short_jobs.value_or(queue.favors_short_jobs);
  }
  return queues;
}

ClusterChange ChangeOf(const ScenarioEvent& event) {
  ClusterChange change{.at = TimeOf(event)};
  std::visit(Overloaded{[&](const CordonNode& each) {
                          change.what = NodeSchedulable{.node = each.node, .schedulable = false};
                        },
                        [&](const UncordonNode& each) {
                          change.what = NodeSchedulable{.node = each.node};
                        },
                        [&](const FailNode& each) {
                          change.what = NodeLost{.node = each.node, .for_time = each.lasts};
                        },
                        [&](const SetPriority& each) {
                          change.what = JobPriority{.job = each.job, .priority = each.priority};
                        },
                        [&](const FinishJob& each) { change.what = JobEnds{.job = each.job}; }},
             event);
  return change;
}

// Batches are doubled and halved, and the largest one must be among them.
Status CheckDoubling(const Profile& profile) {
  std::int64_t batch = profile.min_batch();
  while (batch < profile.max_batch()) batch *= 2;
  if (batch == profile.max_batch()) return {};
  return Invalid(Format(
      "the batches of profile {} go from {} to {}, which is not {} doubled several times; "
      "use --batch fixed, or give the profile a table for {} as its largest batch",
      profile.application(), profile.min_batch(), profile.max_batch(), profile.min_batch(), batch));
}

// A job of any batch begins with the smallest one.
Status CheckSmallestBatch(const Profile& profile, const ScenarioJob& job) {
  if (MaxLearnersOf(profile, profile.min_batch(), job.gpus_per_learner) >= 1) return {};
  return Invalid(
      Format("job {} has {} a learner, and begins with the smallest batch of profile {}: {} is "
             "enough for {}; lower gpusPerLearner, or use --batch fixed",
             job.spec.name, Counted(job.gpus_per_learner, "GPU"), profile.application(),
             profile.min_batch(), Counted(profile.MaxLearners(profile.min_batch()), "GPU")));
}

class JobMaker {
 public:
  JobMaker(const Profiles& profiles, const Scenario& scenario, const InputOptions& options,
           const std::vector<planner::QueueView>& queues)
      : profiles_(profiles), options_(options), largest_node_(LargestNode(scenario.nodes)) {
    for (const planner::NodeView& node : scenario.nodes) ++nodes_[node.allocatable.gpus];
    for (const planner::QueueView& queue : queues) policies_[queue.name] = queue.policy;
  }

  Result<SimulatedJob> Make(const ScenarioJob& from) {
    const Profile& profile = profiles_[from.spec.application];
    if (options_.batch != BatchRule::kFixed) {
      RETURN_IF_ERROR(CheckDoubling(profile));
      RETURN_IF_ERROR(CheckSmallestBatch(profile, from));
    }
    const std::int64_t room = RoomFor(from.gpus_per_learner);
    if (room < from.min_learners) {
      return Invalid(Format("job {} needs {} of {}, and the nodes have room for {}; add nodes",
                            from.spec.name, Counted(from.min_learners, "learner"),
                            Counted(from.gpus_per_learner, "GPU"), room));
    }
    const int max = static_cast<int>(std::min<std::int64_t>(room, MaxLearners(profile, from)));
    SimulatedJob job{.submitted = from.spec.submitted_seconds * 1000,
                     .work = std::make_shared<ProfiledWork>(profile, TimesOf(from), from.spec.batch,
                                                            options_.batch, max),
                     .application = profile.application(),
                     .deadline = from.deadline};
    planner::JobView& view = job.view;
    view.key = {.name_space = "simulation", .name = from.spec.name, .uid = from.spec.name};
    view.queue = from.queue;
    view.priority = from.priority;
    view.min_learners = from.min_learners;
    view.max_learners = max;
    view.training.reproducibility = from.reproducibility;
    // One for each GPU: ranks of a learner have shards of their own.
    view.training.logical_shards = max * from.gpus_per_learner;
    view.needs.resources.gpus = from.gpus_per_learner;
    view.cooldown = policies_.at(from.queue) == planner::QueuePolicy::kThroughput
                        ? planner::Seconds(0)
                        : kCooldown;
    return job;
  }

 private:
  int MaxLearners(const Profile& profile, const ScenarioJob& job) const {
    const int by_batch = MaxLearnersOf(profile, job.spec.batch, job.gpus_per_learner);
    if (options_.batch == BatchRule::kFixed || job.max_learners < by_batch) return job.max_learners;
    return MaxLearnersOf(profile, profile.max_batch(), job.gpus_per_learner);
  }

  std::int64_t RoomFor(int gpus_each) const {
    std::int64_t room = 0;
    for (const auto& [gpus, count] : nodes_) room += count * (gpus / gpus_each);
    return room;
  }

  std::shared_ptr<const PackedTimes> TimesOf(const ScenarioJob& job) {
    const int gpus_each = job.gpus_per_learner;
    auto& times = times_[{job.spec.application, gpus_each}];
    if (times == nullptr) {
      const Profile& profile = profiles_[job.spec.application];
      const auto max = std::min<std::int64_t>(
          RoomFor(gpus_each), MaxLearnersOf(profile, profile.max_batch(), gpus_each));
      times =
          std::make_shared<PackedTimes>(profile, largest_node_, static_cast<int>(max), gpus_each);
    }
    return times;
  }

  const Profiles& profiles_;
  const InputOptions& options_;
  int largest_node_;
  std::map<std::int64_t, std::int64_t> nodes_;  // nodes by their GPUs
  std::map<std::string, planner::QueuePolicy> policies_;
  // By application and GPUs of a learner.
  std::map<std::pair<std::size_t, int>, std::shared_ptr<const PackedTimes>> times_;
};

}  // namespace

int LargestNode(const std::vector<planner::NodeView>& nodes) {
  std::int64_t largest = 1;
  for (const planner::NodeView& node : nodes) largest = std::max(largest, node.allocatable.gpus);
  return static_cast<int>(largest);
}

Result<RunInput> InputOf(const Profiles& profiles, const Scenario& scenario,
                         const InputOptions& options) {
  RunInput input{.nodes = scenario.nodes, .queues = QueuesOf(scenario, options)};
  JobMaker maker(profiles, scenario, options, input.queues);
  for (const ScenarioJob& from : scenario.jobs) {
    ASSIGN_OR_RETURN(SimulatedJob job, maker.Make(from));
    input.jobs.push_back(std::move(job));
  }
  for (const ScenarioEvent& event : scenario.events) input.changes.push_back(ChangeOf(event));
  return input;
}

}  // namespace pliant::simulator
