#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "trainer/checkpoint/state_dict.h"
#include "trainer/data/batch_segments.h"
#include "trainer/data/noise_window.h"

namespace pliant {

// The checksum of parameters, buffers and the optimizer's state: learners with equal checksums hold
// the same bits, with a probability of error of 2^-64. Other data of a program may differ between
// learners.
Result<std::uint64_t> StateChecksum(const StateDict& state);

// The same with what the runtime keeps of the training besides the program's state.
std::uint64_t ChecksumWith(std::uint64_t program_state, const NoiseWindow& noise,
                           const BatchSegments& batches);

// The ranks whose state differs from the most common one; of two equally common states, the one of
// the lowest rank counts. Ranks without a checksum are not judged.
std::vector<int> DifferingRanks(std::span<const std::optional<std::uint64_t>> checksum_of_rank);

}  // namespace pliant
