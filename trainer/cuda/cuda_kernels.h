#pragma once

#include <array>
#include <cstddef>
#include <memory>

#include "base/result.h"
#include "trainer/collective/tree_levels.h"
#include "trainer/cuda/cuda_driver.h"
#include "trainer/cuda/kernel_arguments.h"

namespace pliant {

// The kernels in one context of a GPU. The context is current in all calls, and is still there when
// this is destroyed. A launch only queues the work.
class CudaKernels {
 public:
  enum class Type { kFloat32, kFloat16, kBFloat16 };

  // `device`: as cuDeviceGet returned it. kUnavailable: this build or this GPU has no kernels.
  static Result<std::unique_ptr<CudaKernels>> Load(std::shared_ptr<const CudaDriver> driver,
                                                   int device);
  ~CudaKernels();
  CudaKernels(const CudaKernels&) = delete;
  CudaKernels& operator=(const CudaKernels&) = delete;

  // `sum` has inputs, out, elements and divisor; `levels` are those of its inputs, of which there
  // are kMaxTreeInputs at most.
  Status TreeSum(cuda::TreeSumArguments sum, const TreeLevels& levels, CudaStream stream) const;
  // `gather` has data, offset and size; data are of this type.
  Status Gather(Type type, cuda::GatherArguments gather, CudaStream stream) const;
  // `copy` has from, to and size.
  Status Copy(cuda::CopyArguments copy, CudaStream stream) const;
  // `squares` has data, size and lanes.
  Status Squares(cuda::SquaresArguments squares, CudaStream stream) const;
  Status Checksum(const cuda::ChecksumArguments& bytes, CudaStream stream) const;

 private:
  using Function = void*;

  explicit CudaKernels(std::shared_ptr<const CudaDriver> driver);
  Status Launch(Function kernel, std::size_t blocks, const void* arguments,
                CudaStream stream) const;
  template <typename Arguments>
  Status LaunchFor(Function kernel, std::size_t items, const Arguments& arguments,
                   CudaStream stream) const;

  const std::shared_ptr<const CudaDriver> driver_;
  void* module_ = nullptr;
  std::array<Function, 3> tree_sum_{};      // of 4, 8 and 16 levels
  std::array<Function, 4> balanced_sum_{};  // of 2, 4, 8 and 16 inputs
  Function tree_sum_unaligned_ = nullptr;
  std::array<Function, 3> gather_{};  // by Type
  Function copy_ = nullptr;
  Function squares_ = nullptr;
  Function checksum_ = nullptr;
};

}  // namespace pliant
