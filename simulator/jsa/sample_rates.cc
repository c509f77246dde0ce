#include "simulator/jsa/sample_rates.h"

#include <algorithm>
#include <cstdint>

#include "base/check.h"
#include "base/divide.h"
#include "simulator/model/job_model.h"

namespace pliant::simulator {
double SamplesPerSecond(const Profile& profile, const Placement& placement, int batch) {
  const int learners = Learners(placement);
  const int local = DivideUp(batch, learners);
  const int parts = DivideUp(local, profile.max_local());
  const BatchSplit split = {.learners = learners,
                            .local = local,
                            .accumulations = parts - 1,
                            .atomic = DivideUp(local, parts)};
  // The slowest learner has `local` samples. Others may have one less, so not split.batch().
  return batch / StepSeconds(profile, placement, split);
}

bool CanDivide(const Profile& profile, int learners, int batch, const SampleRules& rules) {
  if (learners > profile.MaxLearners(batch)) return false;
  return rules.accumulates || DivideUp(batch, learners) <= profile.max_local();
}

std::vector<int> BatchesOf(const Profile& profile, const SampleRules& rules) {
  std::vector<int> batches;
  for (std::int64_t batch = profile.min_batch(); batch <= profile.max_batch(); batch *= 2) {
    const int candidate = static_cast<int>(batch);
    for (int gpus = 1; gpus <= rules.max_gpus; ++gpus) {
      if (!CanDivide(profile, gpus, candidate, rules)) continue;
      batches.push_back(candidate);
      break;
    }
  }
  CHECK(!batches.empty(), "one GPU has memory for the smallest batch");
  return batches;
}

double FastestRate(const Profile& profile, const Placement& placement,
                   const std::vector<int>& batches, const SampleRules& rules) {
  double fastest = 0;
  for (const int batch : batches) {
    if (!CanDivide(profile, Learners(placement), batch, rules)) continue;
    fastest = std::max(fastest, SamplesPerSecond(profile, placement, batch));
  }
  return fastest;
}

std::vector<double> FastestRates(const Profile& profile, const std::vector<int>& batches,
                                 const SampleRules& rules) {
  std::vector<double> rates;
  for (int gpus = 1; gpus <= rules.max_gpus; ++gpus) {
    rates.push_back(FastestRate(profile, Packed(gpus, rules.gpus_per_node), batches, rules));
  }
  return rates;
}

double RateAlone(const Profile& profile) {
  const SampleRules alone = {.gpus_per_node = 1, .max_gpus = 1};
  return FastestRates(profile, BatchesOf(profile, alone), alone).front();
}

}  // namespace pliant::simulator
