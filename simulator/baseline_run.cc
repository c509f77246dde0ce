#include "simulator/baseline_run.h"

#include <algorithm>
#include <cstddef>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "base/format.h"
#include "simulator/baselines/optimus.h"
#include "simulator/baselines/strict.h"
#include "simulator/baselines/tiresias.h"
#include "simulator/rounds/round_engine.h"

namespace pliant::simulator {
namespace {

std::unique_ptr<RoundPolicy> MakePolicy(Baseline baseline) {
  switch (baseline) {
    case Baseline::kTiresias:
      return std::make_unique<Tiresias>();
    case Baseline::kOptimus:
      return std::make_unique<Optimus>();
    case Baseline::kStrict:
      break;
  }
  return std::make_unique<StrictGang>();
}

class CountsPlans : public RoundPolicy {
 public:
  explicit CountsPlans(RoundPolicy& policy) : policy_(policy) {}
  std::vector<Allocation> Allocate(const RoundView& view) override {
    ++plans_;
    return policy_.Allocate(view);
  }
  std::int64_t plans() const { return plans_; }

 private:
  RoundPolicy& policy_;
  std::int64_t plans_ = 0;
};

JobRecord RecordOf(const Profiles& profiles, const ScenarioJob& job, JobOutcome outcome) {
  return {.name = job.spec.name,
          .application = profiles[job.spec.application].application(),
          .submitted = job.spec.submitted_seconds * 1000,
          .started = outcome.started_seconds * 1000,
          .completed = outcome.completed_seconds * 1000,
          .deadline = job.deadline,
          .sizes = std::move(outcome.sizes),
          .resizes = outcome.resizes,
          .moves = outcome.moves,
          .gpu_seconds = outcome.gpu_seconds,
          .useful_gpu_seconds = outcome.useful_gpu_seconds};
}

}  // namespace

Status CheckForBaseline(const Scenario& scenario) {
  if (!scenario.queues.empty())
    return Invalid("there are queues, which a baseline does not know; remove them, or the policy");
  if (!scenario.events.empty())
    return Invalid("there are events, which a baseline does not know; remove them, or the policy");
  const std::vector<planner::NodeView>& nodes = scenario.nodes;
  const auto gpus_of = [](const planner::NodeView& node) { return node.allocatable.gpus; };
  if (std::ranges::adjacent_find(nodes, std::ranges::not_equal_to(), gpus_of) != nodes.end()) {
    return Invalid(
        "the nodes differ, and a baseline knows equal ones only; make them equal, or "
        "remove the policy");
  }
  const std::int64_t gpus = nodes.empty() ? 0 : std::ssize(nodes) * gpus_of(nodes.front());
  for (const ScenarioJob& job : scenario.jobs) {
    if (job.spec.gpus <= gpus) continue;
    return Invalid(Format("job {} asks for {}, and the nodes have {}; add nodes", job.spec.name,
                          Counted(job.spec.gpus, "GPU"), gpus));
  }
  return {};
}

Result<RunRecord> RunBaseline(const Profiles& profiles, const Scenario& scenario, Baseline baseline,
                              const BaselineOptions& options) {
  std::vector<JobSpec> specs;
  for (const ScenarioJob& job : scenario.jobs) specs.push_back(job.spec);
  const RoundOptions rounds{
      .nodes = static_cast<int>(scenario.nodes.size()),
      .gpus_per_node = static_cast<int>(scenario.nodes.front().allocatable.gpus),
      .round_seconds = options.round_seconds,
      .restart_seconds = options.restart_seconds};
  const std::unique_ptr<RoundPolicy> policy = MakePolicy(baseline);
  CountsPlans counter(*policy);
  ASSIGN_OR_RETURN(std::vector<JobOutcome> outcomes, RunRounds(profiles, specs, rounds, counter));
  RunRecord record{.gpus = rounds.nodes * rounds.gpus_per_node, .plans = counter.plans()};
  for (std::size_t at = 0; at < outcomes.size(); ++at) {
    record.jobs.push_back(RecordOf(profiles, scenario.jobs[at], std::move(outcomes[at])));
    record.end = std::max(record.end, *record.jobs.back().completed);
  }
  return record;
}

}  // namespace pliant::simulator
