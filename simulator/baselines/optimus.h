#pragma once

#include <cstddef>
#include <map>
#include <vector>

#include "simulator/rounds/round_policy.h"

namespace pliant::simulator {

// Each job in the order of submission gets one GPU. Then the GPU that saves the most seconds of the
// rest of a training is given out, until none saves any. Step times and remaining iterations are
// those of the profile, for learners packed on as few nodes as possible. A job of unchanged size
// keeps its nodes; the others are placed again, smaller ones first.
// (Peng et al., Optimus, EuroSys 2018, with perfect predictions.)
class Optimus : public RoundPolicy {
 public:
  std::vector<Allocation> Allocate(const RoundView& view) override;

 private:
  // Seconds that the next GPU saves; 0 if the job cannot use it.
  double Saving(const RoundJob& job, int gpus, int gpus_per_node);
  double StepSecondsOf(const RoundJob& job, int gpus, int gpus_per_node);
  std::vector<int> Sizes(const RoundView& view);

  // By job and GPUs - 1: seconds of a step.
  std::map<std::size_t, std::vector<double>> step_seconds_;
};

}  // namespace pliant::simulator
