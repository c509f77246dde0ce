#include "trainer/data/permutation.h"

#include <algorithm>
#include <bit>

#include "base/check.h"

namespace pliant {
namespace {

// 2^64 divided by the golden ratio: SplitMix64's step, which keeps runs of zeros apart.
constexpr std::uint64_t kGoldenStep = 0x9e3779b97f4a7c15;

constexpr std::uint64_t Mix(std::uint64_t z) {
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
  z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
  return z ^ (z >> 31);
}

}  // namespace

std::uint64_t HashWords(std::initializer_list<std::uint64_t> words) {
  std::uint64_t hash = Mix(words.size() + kGoldenStep);
  for (const std::uint64_t word : words) hash = Mix((hash ^ word) + kGoldenStep);
  return hash;
}

Permutation::Permutation(std::uint64_t size, std::uint64_t key) : size_(size) {
  CHECK(size >= 1, "nothing to permute");
  half_bits_ = std::max(1, (std::bit_width(size - 1) + 1) / 2);
  half_mask_ = (std::uint64_t{1} << half_bits_) - 1;
  for (int round = 0; round < kRounds; ++round)
    round_keys_[round] = HashWords({key, static_cast<std::uint64_t>(round)});
}

std::uint64_t Permutation::At(std::uint64_t index) const {
  CHECK(index < size_, "an index of the permutation");
  std::uint64_t value = index;
  do {
    std::uint64_t left = value >> half_bits_;
    std::uint64_t right = value & half_mask_;
    for (const std::uint64_t key : round_keys_) {
      const std::uint64_t next = left ^ (Mix(right ^ key) & half_mask_);
      left = right;
      right = next;
    }
    value = left << half_bits_ | right;
  } while (value >= size_);
  return value;
}

}  // namespace pliant
