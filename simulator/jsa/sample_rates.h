#pragma once

#include <vector>

#include "simulator/model/placement.h"
#include "simulator/model/profile.h"

// How many samples a second a job trains. Every sample counts as much as another, whatever the
// batch: the progress of arXiv:2006.13878.
namespace pliant::simulator {

// The sizes and batches that jobs may have.
struct SampleRules {
  int gpus_per_node = 4;
  int max_gpus = 10;  // of a job
  // Whether a learner computes more samples than its GPU has memory for, in parts one after
  // another. The paper has no accumulation: the share of a GPU must fit its memory.
  bool accumulates = false;
  // Whether the speed of a job depends on the nodes that it gets. The paper ignores them: a job is
  // as fast as on the fewest nodes that have its GPUs.
  bool depends_on_nodes = false;
};

// Samples a second of a batch; a learner accumulates as often as its share requires.
double SamplesPerSecond(const Profile& profile, const Placement& placement, int batch);

// Whether `learners` can divide the batch: the share of each is at least the smallest that
// was measured, and fits the memory of its GPU unless the rules accumulate.
bool CanDivide(const Profile& profile, int learners, int batch, const SampleRules& rules);

// The smallest batch of the profile, twice that, four times, ...: those that some size can train.
// Rising; not empty.
std::vector<int> BatchesOf(const Profile& profile, const SampleRules& rules);

// The rate on this placement of the fastest of `batches`; 0: no batch is possible.
double FastestRate(const Profile& profile, const Placement& placement,
                   const std::vector<int>& batches, const SampleRules& rules);

// The same with 1, 2, ... `max_gpus` GPUs, each on as few nodes as possible.
std::vector<double> FastestRates(const Profile& profile, const std::vector<int>& batches,
                                 const SampleRules& rules);

// Samples a second of one GPU with its fastest batch, without accumulation: the unit of speedups
// and of the length of jobs. > 0.
double RateAlone(const Profile& profile);

}  // namespace pliant::simulator
