#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "base/result.h"
#include "simulator/model/profile.h"

namespace pliant::simulator {

// A job as its user submits it.
struct JobSpec {
  std::string name;
  std::int64_t submitted_seconds = 0;
  std::size_t application = 0;  // index in the profiles
  int gpus = 1;                 // that a scheduler without elasticity gives it; one learner each
  int batch = 1;                // samples a step, if its batch is fixed
  bool operator==(const JobSpec&) const = default;
};

// Reads a CSV with the columns name,time,application,num_replicas,batch_size. Jobs come in the
// order of submission, those of the same second in the order of the file. Names are unique, each
// batch is one that the profile has measurements for, and its GPUs have at least the smallest local
// batch. An error names the file, the line and the remedy.
Result<std::vector<JobSpec>> ReadWorkload(const std::filesystem::path& path,
                                          const Profiles& profiles);

}  // namespace pliant::simulator
