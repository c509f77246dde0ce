#pragma once

#include <filesystem>

#include "base/result.h"
#include "simulator/model/profile.h"

namespace pliant::simulator {

// Reads a data set of profiles, which tests/data/pollux/README.md describes:
//   applications.csv           application,epochs,batches,max_local_batch,max_gpus
//   <application>/placements.csv, scalability.csv, validation-<batch>.csv
//   extra_points.csv           optional
// An error names the file, the line and the remedy. All that it returns can be simulated.
Result<Profiles> ReadProfiles(const std::filesystem::path& directory);

}  // namespace pliant::simulator
