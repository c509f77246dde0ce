#pragma once

#include <span>

#include "simulator/events/event_engine.h"
#include "simulator/jsa/poisson_jobs.h"
#include "simulator/jsa/sample_rates.h"
#include "simulator/model/profile.h"

namespace pliant::simulator {

// The same jobs for Pliant: a cluster of equal nodes and one queue, whose policy is Throughput.
// Each job has 1 to `rules.max_gpus` learners of one GPU, and decides its batch ten times, where a
// tenth of its samples begins. `profiles` outlives the input.
RunInput LiveInput(const Profiles& profiles, std::span<const SamplesJob> jobs, int nodes,
                   const SampleRules& rules);

}  // namespace pliant::simulator
