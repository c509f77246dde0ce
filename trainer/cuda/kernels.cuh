#pragma once

// The bodies of the kernels: what one thread does. nvcc compiles them for GPUs, and the host's
// compiler compiles the same text for tests (on_host.h). No values travel between threads here.

#include <cstddef>
#include <cstdint>

#include "trainer/checkpoint/checksum_word.h"
#include "trainer/cuda/kernel_arguments.h"

#if defined(__CUDACC__)
#include <cuda_fp16.h>
#else
#include "trainer/cuda/on_host.h"
#endif

namespace pliant::cuda {

// A thread, and all threads of a launch.
struct Thread {
  unsigned block = 0;
  unsigned thread = 0;  // in the block
  unsigned blocks = 1;

  __device__ std::size_t first() const { return std::size_t{block} * kThreads + thread; }
  __device__ std::size_t stride() const { return std::size_t{blocks} * kThreads; }
};

#if defined(__CUDACC__)
__device__ __forceinline__ float HalfToFloat(std::uint16_t bits) {
  return __half2float(__ushort_as_half(bits));
}
#endif

// ---- Each rounds as IEEE 754 specifies, whatever the compiler's flags are ----

__device__ __forceinline__ float Add(float a, float b) { return __fadd_rn(a, b); }
__device__ __forceinline__ float4 Add(float4 a, float4 b) {
  return {Add(a.x, b.x), Add(a.y, b.y), Add(a.z, b.z), Add(a.w, b.w)};
}
__device__ __forceinline__ float Divide(float a, float b) { return __fdiv_rn(a, b); }
__device__ __forceinline__ float4 Divide(float4 a, float b) {
  return {Divide(a.x, b), Divide(a.y, b), Divide(a.z, b), Divide(a.w, b)};
}
__device__ __forceinline__ float Multiply(float a, float b) { return __fmul_rn(a, b); }
__device__ __forceinline__ float4 Multiply(float4 a, float b) {
  return {Multiply(a.x, b), Multiply(a.y, b), Multiply(a.z, b), Multiply(a.w, b)};
}

// ---- Tree sum ----

template <typename Value>
__device__ __forceinline__ const Value* In(const TreeSumArguments& sum, int input) {
  return reinterpret_cast<const Value*>(sum.inputs[input]);
}

template <typename Value>
__device__ __forceinline__ void Store(const TreeSumArguments& sum, std::size_t i, Value value) {
  if (sum.divisor != 1) value = Divide(value, sum.divisor);
  __stcs(reinterpret_cast<Value*>(sum.out) + i, value);
}

// Any tree. The levels are registers, because every index is a constant once the loops are
// unrolled; an array that is indexed by a variable would be in local memory.
// kLevels: on which sums wait; kAhead: loads under way.
template <typename Value, int kLevels, int kAhead>
__device__ __forceinline__ void TreeSumBody(const TreeSumArguments& sum, Thread self) {
  const std::size_t count = sum.elements * sizeof(float) / sizeof(Value);
  for (std::size_t i = self.first(); i < count; i += self.stride()) {
    Value waiting[kLevels];
    Value node{};
    for (int base = 0; base < sum.count; base += kAhead) {
      Value loaded[kAhead];
#pragma unroll
      for (int k = 0; k < kAhead; ++k) {
        if (base + k < sum.count) loaded[k] = __ldcs(In<Value>(sum, base + k) + i);
      }
#pragma unroll
      for (int k = 0; k < kAhead; ++k) {
        if (base + k >= sum.count) break;
        const int first = sum.first_level[base + k];
        const int last = sum.last_level[base + k];
        node = loaded[k];
#pragma unroll
        for (int level = 0; level < kLevels; ++level) {
          if (level >= first && level < last) node = Add(waiting[level], node);
          if (level == last) waiting[level] = node;
        }
      }
    }
    Store(sum, i, node);
  }
}

// A tree of equal inputs: all loads of a thread are under way at once.
template <int kInputs, int kTogether>
__device__ __forceinline__ void BalancedSumBody(const TreeSumArguments& sum, Thread self) {
  const std::size_t count = sum.elements / 4;
  const std::size_t stride = self.stride();
  for (std::size_t i = self.first(); i < count; i += stride * kTogether) {
    float4 nodes[kTogether][kInputs];
#pragma unroll
    for (int k = 0; k < kTogether; ++k) {
      const std::size_t at = i + k * stride;
#pragma unroll
      for (int input = 0; input < kInputs; ++input) {
        if (at < count) nodes[k][input] = __ldcs(In<float4>(sum, input) + at);
      }
    }
#pragma unroll
    for (int k = 0; k < kTogether; ++k) {
#pragma unroll
      for (int width = 1; width < kInputs; width *= 2) {
#pragma unroll
        for (int left = 0; left < kInputs; left += 2 * width)
          nodes[k][left] = Add(nodes[k][left], nodes[k][left + width]);
      }
      if (i + k * stride < count) Store(sum, i + k * stride, nodes[k][0]);
    }
  }
}

// ---- Gather ----

struct Float32 {
  using One = float;
  using Four = float4;
  __device__ static float Of(float value) { return value; }
  __device__ static float4 Of(float4 values) { return values; }
};
struct Float16 {
  using One = std::uint16_t;
  using Four = ushort4;
  __device__ static float Of(std::uint16_t bits) { return HalfToFloat(bits); }
  __device__ static float4 Of(ushort4 bits) {
    return {Of(bits.x), Of(bits.y), Of(bits.z), Of(bits.w)};
  }
};
struct BFloat16 {
  using One = std::uint16_t;
  using Four = ushort4;
  __device__ static float Of(std::uint16_t bits) {
#if defined(__CUDACC__)
    return __uint_as_float(std::uint32_t{bits} << 16);
#else
    return std::bit_cast<float>(std::uint32_t{bits} << 16);
#endif
  }
  __device__ static float4 Of(ushort4 bits) {
    return {Of(bits.x), Of(bits.y), Of(bits.z), Of(bits.w)};
  }
};

// The last of these tensors that does not begin after `at`: `first` has where each begins.
__device__ __forceinline__ int TensorAt(const std::uint32_t* first, int count, std::uint32_t at) {
  int low = 0;
  int high = count - 1;
  while (low < high) {
    const int middle = (low + high + 1) / 2;
    if (first[middle] <= at) {
      low = middle;
    } else {
      high = middle - 1;
    }
  }
  return low;
}

// A block's elements are so many vectors at most.
inline constexpr unsigned kVectors = kGatheredByBlock / kThreads / 4;

template <typename Value>
__device__ __forceinline__ bool IsAlignedFor(const void* memory) {
  return reinterpret_cast<std::uintptr_t>(memory) % sizeof(Value) == 0;
}

template <typename Type>
__device__ __forceinline__ void GatherBody(const GatherArguments& gather, Thread self) {
  using One = typename Type::One;
  using Four = typename Type::Four;
  const int tensor = TensorAt(gather.first_block, gather.count, self.block);
  const std::size_t begin = std::size_t{self.block - gather.first_block[tensor]} * kGatheredByBlock;
  const std::size_t rest = gather.size[tensor] - begin;
  const unsigned count = rest < kGatheredByBlock ? static_cast<unsigned>(rest) : kGatheredByBlock;
  const One* const data = gather.data[tensor] == nullptr
                              ? nullptr
                              : static_cast<const One*>(gather.data[tensor]) + begin;
  float* const out = gather.out + gather.offset[tensor] + begin;
  const float* const left =
      gather.left == nullptr ? nullptr : gather.left + gather.offset[tensor] + begin;

  unsigned done = 0;  // elements at the beginning
  if (IsAlignedFor<Four>(data) && IsAlignedFor<float4>(out) && IsAlignedFor<float4>(left)) {
    done = count / 4 * 4;
    Four values[kVectors];
    float4 lefts[kVectors];
#pragma unroll
    for (unsigned k = 0; k < kVectors; ++k) {
      const unsigned i = k * kThreads + self.thread;
      if (i >= done / 4) continue;
      if (data != nullptr) values[k] = __ldcs(reinterpret_cast<const Four*>(data) + i);
      if (left != nullptr) lefts[k] = __ldcs(reinterpret_cast<const float4*>(left) + i);
    }
#pragma unroll
    for (unsigned k = 0; k < kVectors; ++k) {
      const unsigned i = k * kThreads + self.thread;
      if (i >= done / 4) continue;
      float4 value = data != nullptr ? Multiply(Type::Of(values[k]), gather.scale) : float4{};
      if (left != nullptr) value = Add(lefts[k], value);
      __stcs(reinterpret_cast<float4*>(out) + i, value);
    }
  }
#pragma unroll 4
  for (unsigned i = done + self.thread; i < count; i += kThreads) {
    float value = data != nullptr ? Multiply(Type::Of(__ldcs(data + i)), gather.scale) : 0.0F;
    if (left != nullptr) value = Add(__ldcs(left + i), value);
    __stcs(out + i, value);
  }
}

// ---- Copy ----

__device__ __forceinline__ void CopyBody(const CopyArguments& copy, Thread self) {
  const int block = TensorAt(copy.first_block, copy.count, self.block);
  const unsigned begin = (self.block - copy.first_block[block]) * kCopiedByBlock;
  const unsigned rest = copy.size[block] - begin;
  const unsigned size = rest < kCopiedByBlock ? rest : kCopiedByBlock;
  const std::byte* const from = copy.from[block] + begin;
  std::byte* const to = copy.to[block] + begin;
  unsigned done = 0;  // bytes at the beginning
  if (IsAlignedFor<float4>(from) && IsAlignedFor<float4>(to)) {
    constexpr unsigned kVector = sizeof(float4);
    done = size / kVector * kVector;
    for (unsigned i = self.thread; i < done / kVector; i += kThreads)
      reinterpret_cast<float4*>(to)[i] = reinterpret_cast<const float4*>(from)[i];
  }
  for (unsigned i = done + self.thread; i < size; i += kThreads) to[i] = from[i];
}

// ---- Squares ----

// A thread is one lane of a cell. The square of a float is exact in fp64.
__device__ __forceinline__ void SquaresBody(const SquaresArguments& squares, Thread self) {
  const std::size_t lanes = std::size_t{squares.cells} * kLanes;
  for (std::size_t i = self.first(); i < lanes; i += self.stride()) {
    const auto cell = static_cast<std::uint32_t>(i / kLanes);
    const int tensor = TensorAt(squares.first_cell, squares.count, cell);
    const unsigned begin = (cell - squares.first_cell[tensor]) * kCell;
    const unsigned rest = squares.size[tensor] - begin;
    const unsigned count = rest < kCell ? rest : kCell;
    const float* const values = squares.data[tensor];
    double sum = 0;
    if (values != nullptr) {
#pragma unroll 8
      for (unsigned at = i % kLanes; at < count; at += kLanes) {
        const double value = values[begin + at];
        sum = __dadd_rn(sum, __dmul_rn(value, value));
      }
    }
    squares.lanes[i] = sum;
  }
}

// ---- Checksum ----

// The part of the checksum that this thread adds. The sum of integers is the same in every order.
__device__ __forceinline__ std::uint64_t ChecksumPart(const ChecksumArguments& bytes, Thread self) {
  const std::size_t whole = bytes.size / sizeof(std::uint64_t);
  std::uint64_t part = self.first() == 0 ? bytes.size : 0;
#pragma unroll 4
  for (std::size_t i = self.first(); i < whole; i += self.stride())
    part += ChecksumOfWord(__ldcs(bytes.words + i), i);
  if (self.first() == 0 && bytes.size % sizeof(std::uint64_t) != 0) {
    std::uint64_t last = 0;
    const auto* const rest = reinterpret_cast<const std::uint8_t*>(bytes.words + whole);
    for (std::size_t byte = 0; byte < bytes.size % sizeof(std::uint64_t); ++byte)
      last |= std::uint64_t{rest[byte]} << 8 * byte;
    part += ChecksumOfWord(last, whole);
  }
  return part;
}

}  // namespace pliant::cuda
