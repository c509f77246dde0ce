#include "trainer/cuda/checksum.h"

#include <algorithm>
#include <cstring>

#include "trainer/cuda/checksum_word.h"

namespace pliant::cuda {

std::uint64_t ChecksumOf(std::span<const std::byte> bytes) {
  std::uint64_t sum = bytes.size();
  for (std::size_t at = 0; at < bytes.size(); at += sizeof(std::uint64_t)) {
    std::uint64_t word = 0;  // the last one is filled up with zeros
    std::memcpy(&word, bytes.data() + at, std::min(sizeof(word), bytes.size() - at));
    sum += ChecksumOfWord(word, at / sizeof(word));
  }
  return sum;
}

}  // namespace pliant::cuda
