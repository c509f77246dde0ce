#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "tests/fakes/cuda/fake_cuda.h"

// The stand-in for CUDA's driver, which the process has loaded.
namespace pliant::fake_nccl {

bool EnqueueOn(void* stream, const fake_cuda::Exchange& exchange);
// CHECKs that it is memory.
std::byte* OnHost(std::uint64_t device, std::size_t bytes);
// Streams get on. False: the context is broken, and nothing runs any longer.
bool Progress();
// A mistake of whoever uses NCCL.
void Report(const std::string& violation);

}  // namespace pliant::fake_nccl
