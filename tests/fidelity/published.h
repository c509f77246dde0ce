#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <utility>

#include "base/result.h"

namespace pliant::simulator {

// Seconds from the submission of a job to its completion, as they were published.
struct Published {
  std::int64_t tiresias = 0;
  std::int64_t optimus = 0;
  std::int64_t pollux = 0;  // of an unseeded search, so nothing can equal it
};

// By number of the workload and name of the job.
using PublishedTimes = std::map<std::pair<int, std::string>, Published>;

// Reads workload,job,tiresias,optimus,pollux.
Result<PublishedTimes> ReadPublished(const std::filesystem::path& path);

}  // namespace pliant::simulator
