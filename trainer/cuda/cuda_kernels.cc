#include "trainer/cuda/cuda_kernels.h"

#include <algorithm>
#include <bit>
#include <cstdint>
#include <span>
#include <utility>

#include "base/check.h"
#include "base/format.h"
#include "trainer/collective/float_loops.h"
#include "trainer/collective/gradient_cells.h"
#include "trainer/cuda/kernel_image.h"

namespace pliant {
namespace {

constexpr int kAttributeMajor = 75;
constexpr int kAttributeMinor = 76;
// Enough to fill every GPU there is; each thread then strides over the rest.
constexpr std::size_t kMaxBlocks = 4096;
constexpr std::size_t kFloatsOfVector = 4;
constexpr std::array kLevels = {4, 8, 16};

bool IsAligned(const void* memory) {
  return reinterpret_cast<std::uintptr_t>(memory) % (kFloatsOfVector * sizeof(float)) == 0;
}

// The arguments for the elements from `begin` on.
cuda::TreeSumArguments From(cuda::TreeSumArguments sum, std::size_t begin) {
  for (int i = 0; i < sum.count; ++i) sum.inputs[i] += begin;
  sum.out += begin;
  sum.elements -= begin;
  return sum;
}

}  // namespace

Result<std::unique_ptr<CudaKernels>> CudaKernels::Load(std::shared_ptr<const CudaDriver> driver,
                                                       int device) {
  int major = 0;
  int minor = 0;
  RETURN_IF_ERROR(driver->Check(driver->device_get_attribute(&major, kAttributeMajor, device),
                                "the compute capability"));
  RETURN_IF_ERROR(driver->Check(driver->device_get_attribute(&minor, kAttributeMinor, device),
                                "the compute capability"));
  if (major < 8) {
    return Fail(ErrorCode::kUnavailable,
                Format("the GPU has compute capability {}.{}; the kernels need 8.0 (A100) or later",
                       major, minor));
  }
  const std::span<const std::byte> image = cuda::KernelImage(major, minor);
  if (image.empty()) {
    return Fail(ErrorCode::kUnavailable,
                "this build of the library has no kernels for GPUs: use the learner images, or "
                "build with CUDA's compiler (nvcc)");
  }
  std::unique_ptr<CudaKernels> kernels(new CudaKernels(driver));
  RETURN_IF_ERROR(driver->Check(driver->module_load_data(&kernels->module_, image.data()),
                                "loading the kernels"));
  Status found;
  const auto find = [&](Function& function, const std::string& name) {
    if (!found) return;
    found = driver->Check(
        driver->module_get_function(&function, kernels->module_, ("pliant_" + name).c_str()),
        "the kernel " + name);
  };
  for (std::size_t i = 0; i < kLevels.size(); ++i)
    find(kernels->tree_sum_[i], Format("tree_sum_{}", kLevels[i]));
  for (std::size_t i = 0; i < kernels->balanced_sum_.size(); ++i)
    find(kernels->balanced_sum_[i], Format("balanced_sum_{}", 2U << i));
  find(kernels->tree_sum_unaligned_, "tree_sum_unaligned");
  find(kernels->gather_[static_cast<std::size_t>(Type::kFloat32)], "gather_f32");
  find(kernels->gather_[static_cast<std::size_t>(Type::kFloat16)], "gather_f16");
  find(kernels->gather_[static_cast<std::size_t>(Type::kBFloat16)], "gather_bf16");
  find(kernels->copy_, "copy");
  find(kernels->squares_, "squares");
  find(kernels->checksum_, "checksum");
  if (!found) return std::unexpected(found.error());
  return kernels;
}

CudaKernels::CudaKernels(std::shared_ptr<const CudaDriver> driver) : driver_(std::move(driver)) {}

CudaKernels::~CudaKernels() {
  if (module_ != nullptr) driver_->module_unload(module_);
}

Status CudaKernels::Launch(Function kernel, std::size_t blocks, const void* arguments,
                           CudaStream stream) const {
  void* parameters[] = {const_cast<void*>(arguments)};  // the driver only reads them
  return driver_->Check(
      driver_->launch_kernel(kernel, static_cast<unsigned>(blocks), 1, 1, cuda::kThreads, 1, 1, 0,
                             stream, parameters, nullptr),
      "the launch of a kernel");
}

template <typename Arguments>
Status CudaKernels::LaunchFor(Function kernel, std::size_t items, const Arguments& arguments,
                              CudaStream stream) const {
  const std::size_t blocks = (items + cuda::kThreads - 1) / cuda::kThreads;
  return Launch(kernel, std::clamp<std::size_t>(blocks, 1, kMaxBlocks), &arguments, stream);
}

Status CudaKernels::TreeSum(cuda::TreeSumArguments sum, const TreeLevels& levels,
                            CudaStream stream) const {
  sum.count = static_cast<int>(levels.first.size());
  CHECK(sum.count <= cuda::kMaxTreeInputs, "the caller checks it");
  // The whole sum waits for nothing.
  const int waiting = levels.count - 1;
  if (waiting > cuda::kMaxTreeLevels) {
    return Invalid(Format("a tree of {} levels is too deep for a GPU: the most are {}",
                          levels.count, cuda::kMaxTreeLevels + 1));
  }
  if (sum.elements == 0) return {};
  const auto narrow = [](int level) { return static_cast<std::uint8_t>(level); };
  std::ranges::transform(levels.first, sum.first_level, narrow);
  std::ranges::transform(levels.last, sum.last_level, narrow);
  bool aligned = IsAligned(sum.out);
  for (int i = 0; i < sum.count; ++i) aligned = aligned && IsAligned(sum.inputs[i]);
  if (!aligned) return LaunchFor(tree_sum_unaligned_, sum.elements, sum, stream);

  const std::size_t rest = sum.elements % kFloatsOfVector;
  if (rest > 0) {
    const auto last = From(sum, sum.elements - rest);
    RETURN_IF_ERROR(LaunchFor(tree_sum_unaligned_, rest, last, stream));
    sum.elements -= rest;
    if (sum.elements == 0) return {};
  }
  const auto inputs = static_cast<unsigned>(sum.count);
  const bool balanced = std::has_single_bit(inputs) && inputs >= 2 && inputs <= 16 &&
                        std::ranges::max(levels.first) == 0;
  const auto deep =
      static_cast<std::size_t>(std::ranges::lower_bound(kLevels, waiting) - kLevels.begin());
  const Function kernel =
      balanced ? balanced_sum_[static_cast<std::size_t>(std::countr_zero(inputs) - 1)]
               : tree_sum_[deep];
  return LaunchFor(kernel, sum.elements / kFloatsOfVector, sum, stream);
}

static_assert(cuda::kCell == GradientCells::kElements && cuda::kLanes == kSquareLanes);

Status CudaKernels::Gather(Type type, cuda::GatherArguments gather, CudaStream stream) const {
  CHECK(gather.count <= cuda::kMaxGathered, "the caller checks it");
  std::uint32_t blocks = 0;
  for (int i = 0; i < gather.count; ++i) {
    gather.first_block[i] = blocks;
    blocks += (gather.size[i] + cuda::kGatheredByBlock - 1) / cuda::kGatheredByBlock;
  }
  if (blocks == 0) return {};
  return Launch(gather_[static_cast<std::size_t>(type)], blocks, &gather, stream);
}

Status CudaKernels::Copy(cuda::CopyArguments copy, CudaStream stream) const {
  CHECK(copy.count <= cuda::kMaxCopied, "the caller checks it");
  std::uint32_t blocks = 0;
  for (int i = 0; i < copy.count; ++i) {
    copy.first_block[i] = blocks;
    blocks += (copy.size[i] + cuda::kCopiedByBlock - 1) / cuda::kCopiedByBlock;
  }
  if (blocks == 0) return {};
  return Launch(copy_, blocks, &copy, stream);
}

Status CudaKernels::Squares(cuda::SquaresArguments squares, CudaStream stream) const {
  CHECK(squares.count <= cuda::kMaxGathered, "the caller checks it");
  for (int i = 0; i < squares.count; ++i) {
    squares.first_cell[i] = squares.cells;
    squares.cells += (squares.size[i] + cuda::kCell - 1) / cuda::kCell;
  }
  if (squares.cells == 0) return {};
  return LaunchFor(squares_, std::size_t{squares.cells} * cuda::kLanes, squares, stream);
}

Status CudaKernels::Checksum(const cuda::ChecksumArguments& bytes, CudaStream stream) const {
  return LaunchFor(checksum_, bytes.size / sizeof(std::uint64_t) + 1, bytes, stream);
}

}  // namespace pliant
