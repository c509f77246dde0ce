#include "simulator/jsa/poisson_jobs.h"

#include <cmath>
#include <random>

#include "base/check.h"
#include "simulator/jsa/sample_rates.h"

namespace pliant::simulator {
namespace {

// Uniform from 0, less than 1. The standard's distributions differ between libraries.
double Uniform(std::mt19937_64& random) { return static_cast<double>(random() >> 11) * 0x1p-53; }

}  // namespace

std::vector<SamplesJob> DrawJobs(const Profiles& profiles, const Arrivals& arrivals,
                                 std::uint64_t seed) {
  CHECK(!arrivals.applications.empty() && arrivals.jobs_per_hour > 0, "some job arrives");
  const auto applications = static_cast<double>(arrivals.applications.size());
  const double mean_gap = 3'600'000 / arrivals.jobs_per_hour;  // ms
  std::mt19937_64 random(seed);
  std::vector<SamplesJob> jobs;
  double time = 0;
  while (true) {
    time -= std::log(1 - Uniform(random)) * mean_gap;
    if (time >= static_cast<double>(arrivals.until)) return jobs;
    const auto which = static_cast<std::size_t>(Uniform(random) * applications);
    const std::size_t application = arrivals.applications[which];
    const double seconds = arrivals.mean_seconds_alone * (0.5 + Uniform(random));
    jobs.push_back({.submitted = static_cast<std::int64_t>(time),
                    .application = application,
                    .samples = seconds * RateAlone(profiles[application]),
                    .random = Uniform(random)});
  }
}

}  // namespace pliant::simulator
