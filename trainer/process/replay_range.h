#pragma once

#include <cstdint>

namespace pliant {

// The steps of a job to compute again: from a checkpoint to later ones.
struct ReplayRange {
  std::uint64_t from = 0;
  std::uint64_t to = 0;  // 0: to the job's last checkpoint or, if it exists, its final model
  bool operator==(const ReplayRange&) const = default;
};

}  // namespace pliant
