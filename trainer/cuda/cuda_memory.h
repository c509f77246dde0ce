#pragma once

#include <memory>
#include <string>

#include "base/result.h"
#include "trainer/cuda/device_memory.h"

namespace pliant {

// The memory of this machine's NVIDIA GPUs, accessed through the driver. The driver is loaded at
// run time: a learner without GPUs does not need it, and no code of ours is linked with it.
// kUnavailable when there is no driver or no GPU; the message says what to do. `path`: a library
// name for the dynamic linker, or a file.
Result<std::shared_ptr<DeviceMemory>> OpenCudaMemory(const std::string& path = "libcuda.so.1");

}  // namespace pliant
