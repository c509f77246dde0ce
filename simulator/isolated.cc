#include "simulator/isolated.h"

#include <algorithm>
#include <cstddef>
#include <map>
#include <memory>
#include <optional>
#include <tuple>

#include "simulator/inputs/scenario_jobs.h"
#include "simulator/model/job_model.h"
#include "simulator/model/placement.h"
#include "simulator/scenario_input.h"

namespace pliant::simulator {
namespace {

double SecondsOn(const Profile& profile, const Placement& gpus, int batch) {
  double seconds = 0;
  double before = 0;
  for (int epoch = 0; epoch < profile.epochs(); ++epoch) {
    const double progress = std::max(profile.ProgressBound(epoch) - before, 0.0);
    before = profile.ProgressBound(epoch);
    seconds += progress / Goodput(profile, epoch, gpus, batch);
  }
  return seconds;
}

}  // namespace

IsolatedSeconds IsolatedSecondsOf(const Profiles& profiles, const Scenario& scenario) {
  using Key = std::tuple<std::size_t, int, int, int>;  // application, batch, GPUs each, learners
  const auto known = std::make_shared<std::map<Key, double>>();
  const int largest_node = LargestNode(scenario.nodes);
  return [=, &profiles, &scenario](std::size_t index, int gpus) -> std::optional<double> {
    const ScenarioJob& job = scenario.jobs[index];
    const Profile& profile = profiles[job.spec.application];
    const int each = job.gpus_per_learner;
    const int allowed = MaxLearnersOf(profile, job.spec.batch, each);
    const int learners = std::max(std::min(gpus / each, allowed), job.min_learners);
    const auto [at, is_new] =
        known->emplace(Key{job.spec.application, job.spec.batch, each, learners}, 0);
    if (is_new) {
      Placement placement = Packed(learners, largest_node / each);
      for (int& on_node : placement) on_node *= each;
      at->second = SecondsOn(profile, placement, job.spec.batch);
    }
    return at->second;
  };
}

}  // namespace pliant::simulator
