#include "trainer/data/permutation.h"

#include <algorithm>
#include <bit>

#include "base/check.h"
#include "trainer/data/random_stream.h"

namespace pliant {
std::uint64_t HashWords(std::initializer_list<std::uint64_t> words) {
  std::uint64_t hash = MixBits(words.size() + kGoldenStep);
  for (const std::uint64_t word : words) hash = MixBits((hash ^ word) + kGoldenStep);
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
      const std::uint64_t next = left ^ (MixBits(right ^ key) & half_mask_);
      left = right;
      right = next;
    }
    value = left << half_bits_ | right;
  } while (value >= size_);
  return value;
}

}  // namespace pliant
