#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "tests/fakes/cuda/race_detector.h"

// Tests control the stand-in for CUDA's driver by these functions. NVIDIA's driver has none of
// them.
namespace pliant::fake_cuda {

// A kernel's source as host code.
struct Kernel {
  const char* name = nullptr;
  std::vector<std::size_t> parameter_sizes;  // bytes, in order
  // The memory that a launch touches, by device addresses.
  std::function<std::vector<Access>(void* const* parameters, unsigned blocks, unsigned threads)>
      touches;
  // `host`: where the bytes at a device address really are.
  std::function<void(void* const* parameters, unsigned blocks, unsigned threads,
                     const std::function<std::byte*(std::uint64_t device)>& host)>
      run;
};

// An operation of a stream that ends when somebody else has done their part.
struct Exchange {
  const char* name = nullptr;
  std::vector<Access> accesses;
  // Called now and then from its turn in the stream on, until it is true. Not to call the driver.
  std::function<bool()> over;
};

}  // namespace pliant::fake_cuda

extern "C" {

// Forgets everything, as a new process has it. FAKE_CUDA_SEED and FAKE_CUDA_DEVICES in the
// environment choose the order of operations, and the number of devices, of a process.
void FakeCudaReset(std::uint64_t seed, int devices);

// For the stand-in for NCCL. Returns a CUDA error.
int FakeCudaEnqueue(void* stream, const pliant::fake_cuda::Exchange* exchange);
// Where the bytes at a device's address really are; nullptr: not all of it is memory.
std::byte* FakeCudaOnHost(std::uint64_t device, std::size_t bytes);
// The streams of this process may get on. Returns the error of the context.
int FakeCudaProgress();
// Another stand-in has found a mistake: see FakeCudaViolation.
void FakeCudaReport(const char* violation);

void FakeCudaAddKernel(const pliant::fake_cuda::Kernel* kernel);

// Operations after the next `operations` ones fail with `error`, and so does every later call.
// Negative: nothing fails any longer.
void FakeCudaFailAfter(int operations, int error);
// The stream (nullptr: the legacy one) runs nothing until it is released: waits for it block.
void FakeCudaHang(void* stream, bool hangs);
// Device memory of the process; negative: unlimited.
void FakeCudaLimitMemory(long long bytes);
// Importing memory of another process fails, as between containers with a GPU each.
void FakeCudaIsolate(bool isolated);

// Calls of this thread so far that made it wait for a device.
int FakeCudaHostWaits();
// Calls of the driver's function of this name so far, of those that a step of a training may make.
int FakeCudaCalls(const char* function);
// Bytes of device memory that are allocated.
std::size_t FakeCudaAllocated();
// Races, and memory freed under a queued operation, so far. The text of one, or nullptr. It is
// valid until the next reset.
const char* FakeCudaViolation(int index);

}  // extern "C"
