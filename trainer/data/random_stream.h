#pragma once

#include <cstdint>

#include "base/check.h"

namespace pliant {

// 2^64 divided by the golden ratio: SplitMix64's step, which keeps runs of zeros apart.
inline constexpr std::uint64_t kGoldenStep = 0x9e3779b97f4a7c15;

// A bijection of 64-bit words in which one changed input bit changes half of the output bits: the
// finaliser of SplitMix64 (Steele, Lea and Flood, "Fast Splittable Pseudorandom Number Generators",
// OOPSLA 2014, with the constants of Stafford's variant 13, as in S. Vigna's public-domain
// splitmix64.c).
constexpr std::uint64_t MixBits(std::uint64_t z) {
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
  z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
  return z ^ (z >> 31);
}

// SplitMix64: the same numbers for the same key, on every machine. Training draws numbers (dropout,
// augmentation) from streams whose key is a hash of their purpose. So they depend neither on the
// learner that draws them nor on earlier draws.
class RandomStream {
 public:
  explicit RandomStream(std::uint64_t key) : state_(key) {}

  std::uint64_t Next() { return MixBits(state_ += kGoldenStep); }

  // 0..bound-1. The bias is at most bound / 2^32: negligible for the small bounds used here.
  std::uint64_t Below(std::uint64_t bound) {
    CHECK(bound > 0, "a value to draw");
    return (Next() >> 32) * bound >> 32;
  }

 private:
  std::uint64_t state_;
};

}  // namespace pliant
