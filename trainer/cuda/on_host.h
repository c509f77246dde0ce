#pragma once

// kernels.cuh needs these names of CUDA. Here they are for a compiler of the host: tests run the
// kernels' own source on the CPU.

#include <bit>
#include <cstdint>

#define __device__
#define __forceinline__ inline

namespace pliant::cuda {

struct alignas(16) float4 {
  float x, y, z, w;
};
struct alignas(8) ushort4 {
  std::uint16_t x, y, z, w;
};
using ushort = std::uint16_t;

inline float __fadd_rn(float a, float b) { return a + b; }
inline float __fmul_rn(float a, float b) { return a * b; }
inline float __fdiv_rn(float a, float b) { return a / b; }
inline double __dadd_rn(double a, double b) { return a + b; }
inline double __dmul_rn(double a, double b) { return a * b; }
inline float HalfToFloat(std::uint16_t bits) {
  return static_cast<float>(std::bit_cast<_Float16>(bits));
}

template <typename T>
T __ldcs(const T* from) {
  return *from;
}
template <typename T>
void __stcs(T* to, T value) {
  *to = value;
}

}  // namespace pliant::cuda
