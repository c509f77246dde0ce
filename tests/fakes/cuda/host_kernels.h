#pragma once

#include <vector>

#include "tests/fakes/cuda/fake_cuda.h"

namespace pliant::fake_cuda {

// The library's kernels: their own source, compiled for the host.
std::vector<Kernel> HostKernels();

}  // namespace pliant::fake_cuda
