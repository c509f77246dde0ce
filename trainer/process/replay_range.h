#pragma once

#include <cstdint>

namespace pliant {

// Which steps of a job are to be computed again: from a checkpoint to later ones.
struct ReplayRange {
  std::uint64_t from = 0;
  std::uint64_t to = 0;  // 0: to the job's last checkpoint or, where it is there, its final model
  bool operator==(const ReplayRange&) const = default;
};

}  // namespace pliant
