#include "trainer/checkpoint/checksum.h"

#include <cstring>

#include "trainer/checkpoint/checksum_word.h"

namespace pliant {

std::uint64_t ChecksumOf(std::span<const std::byte> bytes) {
  constexpr std::size_t kWord = sizeof(std::uint64_t);
  std::uint64_t sum = bytes.size();
  const std::size_t whole = bytes.size() / kWord;
  for (std::size_t i = 0; i < whole; ++i) {
    std::uint64_t word = 0;
    std::memcpy(&word, bytes.data() + i * kWord, kWord);
    sum += cuda::ChecksumOfWord(word, i);
  }
  if (const std::size_t rest = bytes.size() % kWord; rest > 0) {
    std::uint64_t word = 0;  // the last word is padded with zeros
    std::memcpy(&word, bytes.data() + whole * kWord, rest);
    sum += cuda::ChecksumOfWord(word, whole);
  }
  return sum;
}

}  // namespace pliant
