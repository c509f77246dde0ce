#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace pliant {

// CRC-32C (Castagnoli; RFC 3720 §B.4) of `data`, or of what gave `crc` followed by `data`. Uses the
// processor's instruction where it has one.
std::uint32_t Crc32c(std::span<const std::byte> data, std::uint32_t crc = 0);

// The same without the instruction: for processors that lack it, and to test the other.
std::uint32_t Crc32cPortable(std::span<const std::byte> data, std::uint32_t crc = 0);

}  // namespace pliant
