#include "trainer/collective/float_loops.h"

#include <array>
#include <cmath>
#include <cstring>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace pliant {
namespace {

constexpr std::size_t kLanes = 8;

#if defined(__x86_64__)

#define PLIANT_AVX2 [[gnu::target("avx2")]]

// Whether `divisor` is a power of two whose reciprocal is one too: the product is then the same
// real number as the quotient, and so are its bits.
bool DividesAsProduct(float divisor) {
  int exponent = 0;
  return std::frexp(divisor, &exponent) == 0.5F && exponent > -100 && exponent < 100;
}

// The processor's own prefetching stops at every page; prefetching this many floats ahead continues
// it.
constexpr std::size_t kAhead = 256;

const bool kHasAvx2 = __builtin_cpu_supports("avx2");

template <bool kProduct>
PLIANT_AVX2 inline __m256 Divide(__m256 values, __m256 by) {
  return kProduct ? _mm256_mul_ps(values, by) : _mm256_div_ps(values, by);
}

PLIANT_AVX2 inline void Prefetch(const float* values) {
  _mm_prefetch(reinterpret_cast<const char*>(values + kAhead), _MM_HINT_T0);
}

// Each returns how many elements it processed: all except a remainder below a cache line.

PLIANT_AVX2 std::size_t AddWide(float* out, const float* left, const float* right,
                                std::size_t size) {
  std::size_t i = 0;
  for (; i + 2 * kLanes <= size; i += 2 * kLanes) {
    const __m256 low = _mm256_add_ps(_mm256_loadu_ps(left + i), _mm256_loadu_ps(right + i));
    const __m256 high =
        _mm256_add_ps(_mm256_loadu_ps(left + i + kLanes), _mm256_loadu_ps(right + i + kLanes));
    Prefetch(left + i);
    Prefetch(right + i);
    _mm256_storeu_ps(out + i, low);
    _mm256_storeu_ps(out + i + kLanes, high);
  }
  return i;
}

template <bool kProduct>
PLIANT_AVX2 std::size_t DivideWide(float* out, const float* values, float by, std::size_t size) {
  const __m256 all = _mm256_set1_ps(by);
  std::size_t i = 0;
  for (; i + 2 * kLanes <= size; i += 2 * kLanes) {
    const __m256 low = Divide<kProduct>(_mm256_loadu_ps(values + i), all);
    const __m256 high = Divide<kProduct>(_mm256_loadu_ps(values + i + kLanes), all);
    _mm256_storeu_ps(out + i, low);
    _mm256_storeu_ps(out + i + kLanes, high);
  }
  return i;
}

PLIANT_AVX2 std::size_t MultiplyWide(float* out, const float* values, float factor,
                                     std::size_t size) {
  const __m256 all = _mm256_set1_ps(factor);
  std::size_t i = 0;
  for (; i + 2 * kLanes <= size; i += 2 * kLanes) {
    const __m256 low = _mm256_mul_ps(_mm256_loadu_ps(values + i), all);
    const __m256 high = _mm256_mul_ps(_mm256_loadu_ps(values + i + kLanes), all);
    Prefetch(values + i);
    _mm256_storeu_ps(out + i, low);
    _mm256_storeu_ps(out + i + kLanes, high);
  }
  return i;
}

template <bool kProduct>
PLIANT_AVX2 std::size_t AddDivideWide(float* out, const float* left, const float* right, float by,
                                      std::size_t size) {
  const __m256 all = _mm256_set1_ps(by);
  std::size_t i = 0;
  for (; i + 2 * kLanes <= size; i += 2 * kLanes) {
    const __m256 low = _mm256_add_ps(_mm256_loadu_ps(left + i), _mm256_loadu_ps(right + i));
    const __m256 high =
        _mm256_add_ps(_mm256_loadu_ps(left + i + kLanes), _mm256_loadu_ps(right + i + kLanes));
    Prefetch(left + i);
    Prefetch(right + i);
    _mm256_storeu_ps(out + i, Divide<kProduct>(low, all));
    _mm256_storeu_ps(out + i + kLanes, Divide<kProduct>(high, all));
  }
  return i;
}

PLIANT_AVX2 std::size_t SquareWide(std::array<double, kLanes>& lanes, const float* values,
                                   std::size_t size) {
  __m256d low = _mm256_setzero_pd();
  __m256d high = _mm256_setzero_pd();
  std::size_t i = 0;
  for (; i + kLanes <= size; i += kLanes) {
    const __m256d first = _mm256_cvtps_pd(_mm_loadu_ps(values + i));
    const __m256d second = _mm256_cvtps_pd(_mm_loadu_ps(values + i + kLanes / 2));
    Prefetch(values + i);
    low = _mm256_add_pd(low, _mm256_mul_pd(first, first));
    high = _mm256_add_pd(high, _mm256_mul_pd(second, second));
  }
  _mm256_storeu_pd(lanes.data(), low);
  _mm256_storeu_pd(lanes.data() + kLanes / 2, high);
  return i;
}

PLIANT_AVX2 std::size_t CopyWide(float* out, const float* values, std::size_t size) {
  std::size_t i = 0;
  for (; i + 2 * kLanes <= size; i += 2 * kLanes) {
    const __m256 low = _mm256_loadu_ps(values + i);
    const __m256 high = _mm256_loadu_ps(values + i + kLanes);
    Prefetch(values + i);
    _mm256_stream_ps(out + i, low);
    _mm256_stream_ps(out + i + kLanes, high);
  }
  return i;
}

#endif

}  // namespace

void AddInto(float* out, const float* left, const float* right, std::size_t size) {
  std::size_t i = 0;
#if defined(__x86_64__)
  if (kHasAvx2) i = AddWide(out, left, right, size);
#endif
  for (; i < size; ++i) out[i] = left[i] + right[i];
}

void DivideInto(float* out, const float* values, float divisor, std::size_t size) {
  std::size_t i = 0;
#if defined(__x86_64__)
  if (kHasAvx2)
    i = DividesAsProduct(divisor) ? DivideWide<true>(out, values, 1 / divisor, size)
                                  : DivideWide<false>(out, values, divisor, size);
#endif
  for (; i < size; ++i) out[i] = values[i] / divisor;
}

void MultiplyInto(float* out, const float* values, float factor, std::size_t size) {
  std::size_t i = 0;
#if defined(__x86_64__)
  if (kHasAvx2) i = MultiplyWide(out, values, factor, size);
#endif
  for (; i < size; ++i) out[i] = values[i] * factor;
}

void AddDivideInto(float* out, const float* left, const float* right, float divisor,
                   std::size_t size) {
  std::size_t i = 0;
#if defined(__x86_64__)
  if (kHasAvx2)
    i = DividesAsProduct(divisor) ? AddDivideWide<true>(out, left, right, 1 / divisor, size)
                                  : AddDivideWide<false>(out, left, right, divisor, size);
#endif
  for (; i < size; ++i) out[i] = (left[i] + right[i]) / divisor;
}

double SquareOf(const float* values, std::size_t size) {
  std::array<double, kLanes> lanes{};
  std::size_t i = 0;
#if defined(__x86_64__)
  if (kHasAvx2) i = SquareWide(lanes, values, size);
#endif
  for (; i < size; ++i) {
    const double value = values[i];
    lanes[i % kLanes] += value * value;
  }
  return SumOfLanes(lanes.data());
}

double SumOfLanes(const double* lanes) {
  return ((lanes[0] + lanes[4]) + (lanes[2] + lanes[6])) +
         ((lanes[1] + lanes[5]) + (lanes[3] + lanes[7]));
}

void CopyStreamed(float* out, const float* values, std::size_t size) {
  std::size_t done = 0;
#if defined(__x86_64__)
  if (kHasAvx2) {
    done = CopyWide(out, values, size);
    _mm_sfence();  // others may be notified at once that it is there
  }
#endif
  if (done < size) std::memcpy(out + done, values + done, (size - done) * sizeof(float));
}

}  // namespace pliant
