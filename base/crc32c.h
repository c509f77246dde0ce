#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace pliant {

// CRC-32C (Castagnoli; RFC 3720 §B.4) of `data`. With `crc`, the CRC of earlier bytes, it is that
// of those bytes followed by `data`. Uses the fastest method of the processor: carry-less
// multiplication of wide vectors, or the CRC instruction.
std::uint32_t Crc32c(std::span<const std::byte> data, std::uint32_t crc = 0);

// The same without either, for processors that lack both and to test the other two.
std::uint32_t Crc32cPortable(std::span<const std::byte> data, std::uint32_t crc = 0);

}  // namespace pliant
