#pragma once

#include <cstddef>
#include <span>

namespace pliant::cuda {

// The compiled kernels for GPUs of this compute capability (8.0 and later), as cuModuleLoadData
// takes them: machine code, or PTX for GPUs that the compiler did not know. Empty: the library was
// built without CUDA's compiler.
std::span<const std::byte> KernelImage(int major, int minor);

}  // namespace pliant::cuda
