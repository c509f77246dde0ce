#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace pliant {

// A checksum of memory that depends on every byte and its position, but not on the order of work:
// GPU threads and the CPU get the same. It shows whether learners hold the same state; it does not
// protect against deliberate changes.
std::uint64_t ChecksumOf(std::span<const std::byte> bytes);

}  // namespace pliant
