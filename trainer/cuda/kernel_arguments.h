#pragma once

#include <cstddef>
#include <cstdint>

// The arguments of the kernels, as the host passes them. C++20 only: nvcc reads this. All pointers
// are device memory.
namespace pliant::cuda {

inline constexpr unsigned kThreads = 256;  // of a block, for all kernels

inline constexpr int kMaxTreeInputs = 128;
inline constexpr int kMaxTreeLevels = 16;  // on which sums wait

// out[i] = (sum along the tree of inputs[...][i]) / divisor. The inputs are nodes of the tree, in
// the order of their first shards. A node is added to its left siblings on the levels from
// `first_level` on, as long as these are complete; the sum waits at `last_level` for its right
// sibling. Levels count from the lowest one of the inputs.
struct TreeSumArguments {
  const float* inputs[kMaxTreeInputs] = {};
  std::uint8_t first_level[kMaxTreeInputs] = {};
  std::uint8_t last_level[kMaxTreeInputs] = {};
  int count = 0;         // of the inputs
  float divisor = 1;     // 1: the sum itself
  float* out = nullptr;  // may be one of the inputs
  std::size_t elements = 0;
};

// Tensors of a launch: the arguments of a kernel have at most 4 KiB.
inline constexpr int kMaxGathered = 200;
inline constexpr unsigned kGatheredByBlock = 4096;  // elements

// For each element of each tensor: out = left + value · scale, rounded as two operations; without
// `left`, out = value · scale. A tensor without data counts as zero.
struct GatherArguments {
  const void* data[kMaxGathered] = {};           // of the kernel's type
  std::uint32_t offset[kMaxGathered] = {};       // of its elements in `out` and `left`
  std::uint32_t size[kMaxGathered] = {};         // elements, at least 1
  std::uint32_t first_block[kMaxGathered] = {};  // blocks before it
  int count = 0;                                 // of the tensors
  float scale = 1;
  const float* left = nullptr;  // nullptr: none
  float* out = nullptr;         // may be `left`
};

// Blocks of memory of a launch that copies them.
inline constexpr int kMaxCopied = 160;
inline constexpr unsigned kCopiedByBlock = 16384;  // bytes

// Copies blocks of memory, which do not overlap.
struct CopyArguments {
  const std::byte* from[kMaxCopied] = {};
  std::byte* to[kMaxCopied] = {};
  std::uint32_t size[kMaxCopied] = {};         // bytes, at least 1
  std::uint32_t first_block[kMaxCopied] = {};  // blocks of threads before it
  int count = 0;                               // of the blocks of memory
};

// Adds the checksum of `size` bytes to *sum. `words` begins on a boundary of 8.
struct ChecksumArguments {
  const std::uint64_t* words = nullptr;
  std::size_t size = 0;
  unsigned long long* sum = nullptr;
};

// The squares of tensors' cells, in fp64: lane i of a cell adds up every eighth square from the
// i-th on. The lanes of cell c of the launch are at lanes[8 · c]. A tensor without data counts as
// zero.
struct SquaresArguments {
  const float* data[kMaxGathered] = {};
  std::uint32_t size[kMaxGathered] = {};        // elements, at least 1
  std::uint32_t first_cell[kMaxGathered] = {};  // cells before it
  int count = 0;                                // of the tensors
  std::uint32_t cells = 0;                      // of all of them
  double* lanes = nullptr;
};
inline constexpr unsigned kCell = 2048;  // elements, as in GradientCells
inline constexpr unsigned kLanes = 8;    // of a cell

static_assert(sizeof(TreeSumArguments) <= 4096);
static_assert(sizeof(GatherArguments) <= 4096);
static_assert(sizeof(SquaresArguments) <= 4096);
static_assert(sizeof(CopyArguments) <= 4096);

}  // namespace pliant::cuda
