// The kernels' entries. CMake compiles them to one image for all GPUs, which the library embeds.

#include "trainer/cuda/kernels.cuh"

namespace pliant::cuda {
namespace {

__device__ Thread Self() { return {blockIdx.x, threadIdx.x, gridDim.x}; }

}  // namespace

#define PLIANT_KERNEL(name, Arguments)                   \
  extern "C" __global__ void __launch_bounds__(kThreads) \
      name(const __grid_constant__ Arguments arguments)

PLIANT_KERNEL(pliant_tree_sum_4, TreeSumArguments) { TreeSumBody<float4, 4, 8>(arguments, Self()); }
PLIANT_KERNEL(pliant_tree_sum_8, TreeSumArguments) { TreeSumBody<float4, 8, 4>(arguments, Self()); }
PLIANT_KERNEL(pliant_tree_sum_16, TreeSumArguments) {
  TreeSumBody<float4, 16, 4>(arguments, Self());
}
PLIANT_KERNEL(pliant_tree_sum_unaligned, TreeSumArguments) {
  TreeSumBody<float, kMaxTreeLevels, 4>(arguments, Self());
}
PLIANT_KERNEL(pliant_balanced_sum_2, TreeSumArguments) { BalancedSumBody<2, 4>(arguments, Self()); }
PLIANT_KERNEL(pliant_balanced_sum_4, TreeSumArguments) { BalancedSumBody<4, 2>(arguments, Self()); }
PLIANT_KERNEL(pliant_balanced_sum_8, TreeSumArguments) { BalancedSumBody<8, 1>(arguments, Self()); }
PLIANT_KERNEL(pliant_balanced_sum_16, TreeSumArguments) {
  BalancedSumBody<16, 1>(arguments, Self());
}

PLIANT_KERNEL(pliant_gather_f32, GatherArguments) { GatherBody<Float32>(arguments, Self()); }
PLIANT_KERNEL(pliant_gather_f16, GatherArguments) { GatherBody<Float16>(arguments, Self()); }
PLIANT_KERNEL(pliant_gather_bf16, GatherArguments) { GatherBody<BFloat16>(arguments, Self()); }

PLIANT_KERNEL(pliant_copy, CopyArguments) { CopyBody(arguments, Self()); }

PLIANT_KERNEL(pliant_squares, SquaresArguments) { SquaresBody(arguments, Self()); }

PLIANT_KERNEL(pliant_checksum, ChecksumArguments) {
  unsigned long long part = ChecksumPart(arguments, Self());
  for (int offset = 16; offset > 0; offset /= 2) part += __shfl_down_sync(0xffffffff, part, offset);
  if (threadIdx.x % 32 == 0) atomicAdd(arguments.sum, part);
}

}  // namespace pliant::cuda
