#include "base/crc32c.h"

#include <array>
#include <bit>
#include <cstring>

#if defined(__x86_64__)
#include <immintrin.h>
#elif defined(__aarch64__)
#include <asm/hwcap.h>
#include <sys/auxv.h>
#endif

namespace pliant {
namespace {

static_assert(std::endian::native == std::endian::little, "words are read as they lie in memory");

constexpr std::uint32_t kPolynomial = 0x82f63b78;  // 0x1edc6f41, bits reflected

// The state of a CRC is linear over GF(2), so a map of states is defined by its value for each
// byte.
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

// The map that 2^`log2_bytes` zero bytes apply to a state.
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

// kSlices[k][b]: the state after byte b and k zero bytes, starting from state 0.
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

// The instruction takes three cycles, but one can start in each cycle. So three parts are processed
// at once. They are joined by moving the states of the first two past the zeros that stand for the
// bytes that follow.
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

// Carry-less multiplication moves a whole vector past the bytes that follow it, so that memory is
// the limit: a CRC does not change when 128 bits are replaced by their value modulo the polynomial,
// added at a later place in the data. Multiplying 64 bits by a constant of 32 bits, both reflected,
// gives the product times x^33; the constants compensate for this.
constexpr std::uint32_t PowerOfX(std::size_t exponent) {
  std::uint32_t power = std::uint32_t{1} << 31;  // x^0, bits reflected
  for (std::size_t i = 0; i < exponent; ++i) power = StepOneBit(power);
  return power;
}

struct FoldBy {
  std::uint64_t low;   // for the first 64 bits of 128
  std::uint64_t high;  // for the others
};
constexpr FoldBy MakeFold(std::size_t bytes) {
  return {.low = PowerOfX(8 * bytes + 64 - 33), .high = PowerOfX(8 * bytes - 33)};
}

#define PLIANT_WIDE_TARGET [[gnu::target("avx512f,vpclmulqdq,pclmul,sse4.2")]]

PLIANT_WIDE_TARGET inline __m128i Constants(FoldBy by) {
  return _mm_set_epi64x(static_cast<long long>(by.high), static_cast<long long>(by.low));
}

PLIANT_WIDE_TARGET inline __m512i FoldWide(__m512i value, __m512i by, __m512i onto) {
  constexpr int kXorOfThree = 0x96;
  return _mm512_ternarylogic_epi64(_mm512_clmulepi64_epi128(value, by, 0x00),
                                   _mm512_clmulepi64_epi128(value, by, 0x11), onto, kXorOfThree);
}

PLIANT_WIDE_TARGET inline __m128i Fold(__m128i value, __m128i by, __m128i onto) {
  return _mm_xor_si128(
      _mm_xor_si128(_mm_clmulepi64_si128(value, by, 0x00), _mm_clmulepi64_si128(value, by, 0x11)),
      onto);
}

constexpr std::size_t kVector = 64;
constexpr std::size_t kMinWide = 8 * kVector;  // below, the final folding costs more than it saves

// `data` has at least kMinWide bytes.
PLIANT_WIDE_TARGET std::uint32_t Crc32cWide(std::span<const std::byte> data, std::uint32_t crc) {
  static constexpr FoldBy kPastFour = MakeFold(4 * kVector);
  static constexpr FoldBy kPastOne = MakeFold(kVector);
  static constexpr FoldBy kPastQuarter = MakeFold(kVector / 4);
  const std::byte* next = data.data();
  std::size_t left = data.size();
  __m512i sums[4];  // no std::array: it would lose the type's alignment
  for (__m512i& sum : sums) {
    sum = _mm512_loadu_si512(next);
    next += kVector;
  }
  left -= 4 * kVector;
  sums[0] =
      _mm512_xor_si512(sums[0], _mm512_zextsi128_si512(_mm_cvtsi32_si128(static_cast<int>(~crc))));

  const __m512i past_four = _mm512_broadcast_i32x4(Constants(kPastFour));
  for (; left >= 4 * kVector; left -= 4 * kVector) {
    for (__m512i& sum : sums) {
      sum = FoldWide(sum, past_four, _mm512_loadu_si512(next));
      next += kVector;
    }
  }
  const __m512i past_one = _mm512_broadcast_i32x4(Constants(kPastOne));
  const __m512i sum = FoldWide(FoldWide(FoldWide(sums[0], past_one, sums[1]), past_one, sums[2]),
                               past_one, sums[3]);
  const __m128i past_quarter = Constants(kPastQuarter);
  __m128i last =
      Fold(_mm512_extracti32x4_epi32(sum, 0), past_quarter, _mm512_extracti32x4_epi32(sum, 1));
  last = Fold(last, past_quarter, _mm512_extracti32x4_epi32(sum, 2));
  last = Fold(last, past_quarter, _mm512_extracti32x4_epi32(sum, 3));
  std::uint64_t state = _mm_crc32_u64(0, static_cast<std::uint64_t>(_mm_extract_epi64(last, 0)));
  state = _mm_crc32_u64(state, static_cast<std::uint64_t>(_mm_extract_epi64(last, 1)));
  return Crc32cSse42(data.last(left), ~static_cast<std::uint32_t>(state));
}

#undef PLIANT_WIDE_TARGET

#elif defined(__aarch64__)

[[gnu::target("+crc")]] std::uint32_t Crc32cArm(std::span<const std::byte> data,
                                                std::uint32_t crc) {
  std::uint32_t state = ~crc;
  const std::byte* next = data.data();
  std::size_t left = data.size();
  for (; left >= sizeof(std::uint64_t);
       next += sizeof(std::uint64_t), left -= sizeof(std::uint64_t))
    state = __builtin_aarch64_crc32cx(state, LoadWord(next));
  for (; left > 0; ++next, --left)
    state = __builtin_aarch64_crc32cb(state, std::to_integer<std::uint8_t>(*next));
  return ~state;
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
  static const bool has_wide =
      has_instruction && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("vpclmulqdq");
  if (has_wide && data.size() >= kMinWide) return Crc32cWide(data, crc);
  if (has_instruction) return Crc32cSse42(data, crc);
#elif defined(__aarch64__)
  static const bool has_instruction = (::getauxval(AT_HWCAP) & HWCAP_CRC32) != 0;
  if (has_instruction) return Crc32cArm(data, crc);
#endif
  return Crc32cPortable(data, crc);
}

}  // namespace pliant
