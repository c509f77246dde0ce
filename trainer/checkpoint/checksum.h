#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace pliant {

// A checksum of memory that depends on every byte and its place, but not on the order of work: GPU
// threads and the processor get the same. To tell whether learners hold the same state; no
// protection against intent.
std::uint64_t ChecksumOf(std::span<const std::byte> bytes);

}  // namespace pliant
