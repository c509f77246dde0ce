#include <algorithm>
#include <cstdint>

#include "trainer/checkpoint/checksum_word.h"
#include "trainer/cuda/kernels.h"

namespace pliant::cuda {
namespace {

constexpr int kThreads = 256;
// Enough to fill every GPU there is; each thread then strides over the rest.
constexpr std::size_t kMaxBlocks = 4096;

int BlocksFor(std::size_t items) {
  return static_cast<int>(
      std::clamp<std::size_t>((items + kThreads - 1) / kThreads, 1, kMaxBlocks));
}

bool IsAligned(const void* pointer) {
  return reinterpret_cast<std::uintptr_t>(pointer) % sizeof(float4) == 0;
}

// Rounds as IEEE 754 specifies, whatever the compiler's flags.
__device__ float Add(float a, float b) { return __fadd_rn(a, b); }
__device__ float4 Add(float4 a, float4 b) {
  return {Add(a.x, b.x), Add(a.y, b.y), Add(a.z, b.z), Add(a.w, b.w)};
}
__device__ float Divide(float a, float b) { return __fdiv_rn(a, b); }
__device__ float4 Divide(float4 a, float b) {
  return {Divide(a.x, b), Divide(a.y, b), Divide(a.z, b), Divide(a.w, b)};
}

template <typename Value>
__global__ void TreeSumKernel(const __grid_constant__ TreeSumShape shape,
                              const __grid_constant__ TreeSumInputs inputs, float divisor,
                              Value* __restrict__ out, std::size_t count) {
  const std::size_t stride = std::size_t{gridDim.x} * blockDim.x;
  for (std::size_t i = std::size_t{blockIdx.x} * blockDim.x + threadIdx.x; i < count; i += stride) {
    Value stack[kMaxTreeDepth];
    int depth = 0;
    for (int input = 0; input < shape.inputs; ++input) {
      Value value = __ldcs(reinterpret_cast<const Value*>(inputs.of[input]) + i);
      for (int left = shape.additions[input]; left > 0; --left) value = Add(stack[--depth], value);
      stack[depth++] = value;
    }
    __stcs(out + i, Divide(stack[0], divisor));
  }
}

__global__ void ChecksumKernel(const std::uint64_t* __restrict__ words, std::size_t size,
                               unsigned long long* sum) {
  const std::size_t stride = std::size_t{gridDim.x} * blockDim.x;
  const std::size_t first = std::size_t{blockIdx.x} * blockDim.x + threadIdx.x;
  const std::size_t whole = size / sizeof(std::uint64_t);
  unsigned long long part = first == 0 ? size : 0;
  for (std::size_t i = first; i < whole; i += stride) part += ChecksumOfWord(words[i], i);
  if (first == 0 && size % sizeof(std::uint64_t) != 0) {
    std::uint64_t last = 0;
    const auto* const bytes = reinterpret_cast<const std::uint8_t*>(words + whole);
    for (std::size_t byte = 0; byte < size % sizeof(std::uint64_t); ++byte)
      last |= std::uint64_t{bytes[byte]} << 8 * byte;
    part += ChecksumOfWord(last, whole);
  }
  for (int offset = 16; offset > 0; offset /= 2) part += __shfl_down_sync(0xffffffff, part, offset);
  if (threadIdx.x % 32 == 0) atomicAdd(sum, part);  // integers: every order gives the same sum
}

}  // namespace

cudaError_t LaunchTreeSum(const TreeSumShape& shape, const TreeSumInputs& inputs, float divisor,
                          float* out, std::size_t elements, cudaStream_t stream) {
  if (shape.inputs < 1 || shape.inputs > kMaxTreeInputs) return cudaErrorInvalidValue;
  if (elements == 0) return cudaSuccess;
  bool vectors = elements % 4 == 0 && IsAligned(out);
  int depth = 0;
  for (int i = 0; i < shape.inputs; ++i) {
    vectors = vectors && IsAligned(inputs.of[i]);
    depth += 1 - shape.additions[i];
    if (depth < 1 || depth > kMaxTreeDepth) return cudaErrorInvalidValue;
  }
  if (depth != 1) return cudaErrorInvalidValue;
  if (vectors)
    TreeSumKernel<<<BlocksFor(elements / 4), kThreads, 0, stream>>>(
        shape, inputs, divisor, reinterpret_cast<float4*>(out), elements / 4);
  else
    TreeSumKernel<<<BlocksFor(elements), kThreads, 0, stream>>>(shape, inputs, divisor, out,
                                                                elements);
  return cudaGetLastError();
}

cudaError_t LaunchChecksum(const void* bytes, std::size_t size, std::uint64_t* sum,
                           cudaStream_t stream) {
  if (reinterpret_cast<std::uintptr_t>(bytes) % sizeof(std::uint64_t) != 0)
    return cudaErrorInvalidValue;
  ChecksumKernel<<<BlocksFor(size / sizeof(std::uint64_t) + 1), kThreads, 0, stream>>>(
      static_cast<const std::uint64_t*>(bytes), size, reinterpret_cast<unsigned long long*>(sum));
  return cudaGetLastError();
}

}  // namespace pliant::cuda
