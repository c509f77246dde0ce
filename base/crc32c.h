#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace pliant {

// CRC-32C (Castagnoli; RFC 3720 §B.4) of `data`, or of what gave `crc` followed by `data`. Uses
// what the processor has for it: carry-less multiplication of wide vectors, or the instruction.
std::uint32_t Crc32c(std::span<const std::byte> data, std::uint32_t crc = 0);

// The same without: for processors that lack both, and to test the others.
std::uint32_t Crc32cPortable(std::span<const std::byte> data, std::uint32_t crc = 0);

}  // namespace pliant
