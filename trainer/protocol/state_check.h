#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "trainer/checkpoint/state_dict.h"

namespace pliant {

// Over parameters, buffers and the optimizer's state: learners that agree on it hold the same bits,
// except for chance of 2^-64. What else a program keeps may differ from learner to learner.
std::uint64_t StateChecksum(const StateDict& state);

// The ranks whose state is not the one that most of them hold; of two states that equally many
// hold, the one of the lowest rank counts. Who said nothing is not judged.
std::vector<int> DifferingRanks(std::span<const std::optional<std::uint64_t>> checksum_of_rank);

}  // namespace pliant
