#pragma once

#include <cstdint>

#if defined(__CUDACC__)
#define PLIANT_HOST_DEVICE __host__ __device__
#else
#define PLIANT_HOST_DEVICE
#endif

namespace pliant::cuda {

// The value that the 64-bit word at `index` adds to the checksum (mod 2^64): SplitMix64's finaliser
// over the word and its position.
PLIANT_HOST_DEVICE inline std::uint64_t ChecksumOfWord(std::uint64_t word, std::uint64_t index) {
  std::uint64_t z = word + (index + 1) * 0x9e3779b97f4a7c15;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
  z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
  return z ^ (z >> 31);
}

}  // namespace pliant::cuda
