#pragma once

#include <memory>
#include <string>

#include "base/result.h"
#include "trainer/cuda/device_memory.h"

namespace pliant {

// The memory of this machine's NVIDIA GPUs, by the driver, which is opened at run time: a learner
// without GPUs needs none, and nothing of ours is linked with it. kUnavailable, saying what to do,
// when there is no driver or no GPU. `path`: a name for the dynamic linker, or a file.
Result<std::shared_ptr<DeviceMemory>> OpenCudaMemory(const std::string& path = "libcuda.so.1");

}  // namespace pliant
