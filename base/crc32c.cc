#include "base/crc32c.h"

#include <array>
#include <bit>
#include <cstring>

#if defined(__x86_64__)
#include <nmmintrin.h>
#endif

namespace pliant {
namespace {

static_assert(std::endian::native == std::endian::little, "words are read as they lie in memory");

constexpr std::uint32_t kPolynomial = 0x82f63b78;  // 0x1edc6f41, bits reflected

// The state of a CRC is linear over GF(2): a map of states is known by what it makes of each byte.
using ByteTable = std::array<std::uint32_t, 256>;
using StateMap = std::array<ByteTable, 4>;

constexpr std::uint32_t Apply(const StateMap& map, std::uint32_t state) {
  return map[0][state & 0xff] ^ map[1][state >> 8 & 0xff] ^ map[2][state >> 16 & 0xff] ^
         map[3][state >> 24];
}

constexpr StateMap FromColumns(const std::array<std::uint32_t, 32>& columns) {
  StateMap map{};
  for (std::size_t byte = 0; byte < 4; ++byte)
    for (std::uint32_t value = 0; value < 256; ++value)
      for (std::size_t bit = 0; bit < 8; ++bit)
        if ((value >> bit & 1) != 0) map[byte][value] ^= columns[8 * byte + bit];
  return map;
}

constexpr std::uint32_t StepOneBit(std::uint32_t state) {
  return (state >> 1) ^ ((state & 1) != 0 ? kPolynomial : 0);
}

// What 2^`log2_bytes` zero bytes make of a state.
constexpr StateMap MapOfZeros(int log2_bytes) {
  std::array<std::uint32_t, 32> columns{};
  for (std::size_t bit = 0; bit < 32; ++bit) {
    std::uint32_t state = std::uint32_t{1} << bit;
    for (int i = 0; i < 8; ++i) state = StepOneBit(state);
    columns[bit] = state;
  }
  StateMap map = FromColumns(columns);
  for (int i = 0; i < log2_bytes; ++i) {
    for (std::size_t bit = 0; bit < 32; ++bit)
      columns[bit] = Apply(map, Apply(map, std::uint32_t{1} << bit));
    map = FromColumns(columns);
  }
  return map;
}

// kSlices[k][b]: what byte b followed by k zero bytes makes of state 0.
constexpr std::array<ByteTable, 8> MakeSlices() {
  std::array<ByteTable, 8> slices{};
  for (std::uint32_t byte = 0; byte < 256; ++byte) {
    std::uint32_t state = byte;
    for (ByteTable& slice : slices) {
      for (int i = 0; i < 8; ++i) state = StepOneBit(state);
      slice[byte] = state;
    }
  }
  return slices;
}

std::uint64_t LoadWord(const std::byte* data) {
  std::uint64_t word = 0;
  std::memcpy(&word, data, sizeof(word));
  return word;
}

#if defined(__x86_64__)

// The instruction takes three cycles but one can start in each: three parts are worked on at once,
// and joined by moving the states of the first two past the zeros that stand for what follows.
constexpr int kLog2Part = 10;
constexpr std::size_t kPart = std::size_t{1} << kLog2Part;

[[gnu::target("sse4.2")]] std::uint32_t Crc32cSse42(std::span<const std::byte> data,
                                                    std::uint32_t crc) {
  static constexpr StateMap kPastPart = MapOfZeros(kLog2Part);
  std::uint64_t state = static_cast<std::uint32_t>(~crc);
  const std::byte* next = data.data();
  std::size_t left = data.size();
  for (; left >= 3 * kPart; next += 3 * kPart, left -= 3 * kPart) {
    std::uint64_t second = 0;
    std::uint64_t third = 0;
    for (std::size_t i = 0; i < kPart; i += sizeof(std::uint64_t)) {
      state = _mm_crc32_u64(state, LoadWord(next + i));
      second = _mm_crc32_u64(second, LoadWord(next + kPart + i));
      third = _mm_crc32_u64(third, LoadWord(next + 2 * kPart + i));
    }
    state = Apply(kPastPart, static_cast<std::uint32_t>(state)) ^ second;
    state = Apply(kPastPart, static_cast<std::uint32_t>(state)) ^ third;
  }
  for (; left >= sizeof(std::uint64_t);
       next += sizeof(std::uint64_t), left -= sizeof(std::uint64_t))
    state = _mm_crc32_u64(state, LoadWord(next));
  for (; left > 0; ++next, --left)
    state = _mm_crc32_u8(static_cast<std::uint32_t>(state), std::to_integer<std::uint8_t>(*next));
  return ~static_cast<std::uint32_t>(state);
}

#endif

}  // namespace

std::uint32_t Crc32cPortable(std::span<const std::byte> data, std::uint32_t crc) {
  static constexpr std::array<ByteTable, 8> kSlices = MakeSlices();
  std::uint32_t state = ~crc;
  const std::byte* next = data.data();
  std::size_t left = data.size();
  for (; left >= 8; next += 8, left -= 8) {
    const std::uint64_t word = LoadWord(next) ^ state;
    state = 0;
    for (std::size_t byte = 0; byte < 8; ++byte)
      state ^= kSlices[7 - byte][word >> 8 * byte & 0xff];
  }
  for (; left > 0; ++next, --left)
    state = kSlices[0][(state ^ std::to_integer<std::uint32_t>(*next)) & 0xff] ^ (state >> 8);
  return ~state;
}

std::uint32_t Crc32c(std::span<const std::byte> data, std::uint32_t crc) {
#if defined(__x86_64__)
  static const bool has_instruction = __builtin_cpu_supports("sse4.2");
  if (has_instruction) return Crc32cSse42(data, crc);
#endif
  return Crc32cPortable(data, crc);
}

}  // namespace pliant
