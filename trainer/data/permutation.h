#pragma once

#include <array>
#include <cstdint>
#include <initializer_list>

namespace pliant {

// A hash of a sequence of words, the same on every machine.
std::uint64_t HashWords(std::initializer_list<std::uint64_t> words);

// A pseudo-random permutation of 0..size-1 with random access and no memory: a balanced Feistel
// network (Luby and Rackoff 1988) on the smallest even number of bits that holds `size`, walked
// along its cycle until it falls below `size` (Black and Rogaway, "Ciphers with Arbitrary Finite
// Domains", 2002). The domain is less than four times `size`, so that takes less than four rounds
// of the network on average.
class Permutation {
 public:
  Permutation(std::uint64_t size, std::uint64_t key);  // size ≥ 1

  std::uint64_t At(std::uint64_t index) const;  // index < size

 private:
  static constexpr int kRounds = 8;

  std::uint64_t size_;
  int half_bits_;
  std::uint64_t half_mask_;
  std::array<std::uint64_t, kRounds> round_keys_;
};

}  // namespace pliant
