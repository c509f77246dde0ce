#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "simulator/model/profile.h"

namespace pliant::simulator {

// Jobs that arrive at random. Their length does not depend on how their application was profiled.
struct Arrivals {
  std::vector<std::size_t> applications;  // indices in the profiles, equally frequent; not empty
  double jobs_per_hour = 60;
  std::int64_t until = 8 * 3'600'000;  // ms
  double mean_seconds_alone = 2'400;   // with one GPU and its fastest batch
};

struct SamplesJob {
  std::int64_t submitted = 0;  // ms
  std::size_t application = 0;
  double samples = 0;  // of its whole training
  // From 0, less than 1: chooses the batch of a job whose batch is random.
  double random = 0;
  bool operator==(const SamplesJob&) const = default;
};

// A Poisson process, in the order of arrival. The time that a job takes alone is uniform from half
// of the mean to one and a half. Equal input gives equal jobs.
std::vector<SamplesJob> DrawJobs(const Profiles& profiles, const Arrivals& arrivals,
                                 std::uint64_t seed);

}  // namespace pliant::simulator
