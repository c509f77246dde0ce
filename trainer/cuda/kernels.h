#pragma once

#include <cstddef>
#include <cstdint>

#include <cuda_runtime_api.h>

// Launchers of the kernels. All pointers are device memory; nothing waits for the stream. C++20
// only: nvcc reads this.
namespace pliant::cuda {

inline constexpr int kMaxTreeInputs = 128;
inline constexpr int kMaxTreeDepth = 24;

// The arguments of a tree sum that do not change with the data: from a MergePlan.
struct TreeSumShape {
  int inputs = 0;
  std::uint8_t additions[kMaxTreeInputs] = {};
};

struct TreeSumInputs {
  const float* of[kMaxTreeInputs] = {};
};

// out[i] = (sum along the tree of inputs[...][i]) / divisor: the same bits as TreeSum on the CPU.
// `out` overlaps with no input. Vectors of four are used where all pointers allow it.
cudaError_t LaunchTreeSum(const TreeSumShape& shape, const TreeSumInputs& inputs, float divisor,
                          float* out, std::size_t elements, cudaStream_t stream);

// Adds ChecksumOf the bytes to *sum. `bytes` begins on a boundary of 8.
cudaError_t LaunchChecksum(const void* bytes, std::size_t size, std::uint64_t* sum,
                           cudaStream_t stream);

}  // namespace pliant::cuda
