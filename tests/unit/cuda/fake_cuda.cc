// A stand-in for NVIDIA's driver: libcuda.so.1 with the functions that the product and the tests
// use. Its "device memory" is on the heap, but has addresses that are invalid on any CPU. Queued
// work runs only when the context is synchronized. Every other block belongs to a memory pool.

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <iterator>
#include <map>
#include <mutex>
#include <vector>

namespace {

using DevicePointer = std::uint64_t;

enum {
  kSuccess = 0,
  kInvalidValue = 1,
  kOutOfMemory = 2,
  kInvalidContext = 201,
  kLaunchFailed = 719,
};
constexpr DevicePointer kFarAway = DevicePointer{1} << 62U;  // beyond all canonical addresses
constexpr int kPoison = 0xcb;

struct Block {
  std::size_t bytes = 0;
  bool pooled = false;  // belongs to a device's memory pool, and to no context
};

int g_context = 0;  // the address of this variable stands for the only context
thread_local int t_pushed = 0;

std::mutex g_mutex;
// The variables below are guarded by g_mutex.
std::map<DevicePointer, Block> g_blocks;  // by address
bool g_next_is_pooled = false;
std::vector<std::function<void()>> g_queued;
int g_copies_to_failure = -1;  // negative: never

bool IsDevice(DevicePointer at, std::size_t bytes) {
  auto block = g_blocks.upper_bound(at);
  if (block == g_blocks.begin()) return false;
  --block;
  return at + bytes <= block->first + block->second.bytes;
}

std::byte* OnHeap(DevicePointer at) { return reinterpret_cast<std::byte*>(at - kFarAway); }

template <typename Copy>
int Try(DevicePointer at, std::size_t bytes, const Copy& copy) {
  const std::lock_guard lock(g_mutex);
  if (t_pushed == 0) return kInvalidContext;
  if (!IsDevice(at, bytes)) return kInvalidValue;
  if (g_copies_to_failure == 0) return kLaunchFailed;
  if (g_copies_to_failure > 0) --g_copies_to_failure;
  copy();
  return kSuccess;
}

}  // namespace

extern "C" {

// Copies after the next `copies` ones fail. The real driver does not have this function.
void FakeCudaFailAfter(int copies) {
  const std::lock_guard lock(g_mutex);
  g_copies_to_failure = copies;
}

int cuInit(unsigned) { return kSuccess; }

int cuGetErrorName(int error, const char** name) {
  *name = error == kLaunchFailed ? "CUDA_ERROR_LAUNCH_FAILED" : "CUDA_ERROR_OTHER";
  return kSuccess;
}

int cuDeviceGet(int* device, int) {
  *device = 0;
  return kSuccess;
}

int cuDevicePrimaryCtxRetain(void** context, int) {
  *context = &g_context;
  return kSuccess;
}

int cuCtxPushCurrent_v2(void* context) {
  if (context != &g_context) return kInvalidContext;
  ++t_pushed;
  return kSuccess;
}

int cuCtxPopCurrent_v2(void** context) {
  if (t_pushed == 0) return kInvalidContext;
  *context = &g_context;
  --t_pushed;
  return kSuccess;
}

int cuCtxSynchronize() {
  const std::lock_guard lock(g_mutex);
  if (t_pushed == 0) return kInvalidContext;
  for (const std::function<void()>& task : g_queued) task();
  g_queued.clear();
  return kSuccess;
}

int cuPointerGetAttribute(void* data, int attribute, DevicePointer at) {
  const std::lock_guard lock(g_mutex);
  if (!IsDevice(at, 1)) return kInvalidValue;
  if (attribute == 1) {  // CU_POINTER_ATTRIBUTE_CONTEXT
    const bool pooled = std::prev(g_blocks.upper_bound(at))->second.pooled;
    *static_cast<void**>(data) = pooled ? nullptr : &g_context;
  } else {  // memory type: device; ordinal: 0
    *static_cast<std::uint32_t*>(data) = attribute == 2 ? 2 : 0;
  }
  return kSuccess;
}

int cuMemAlloc_v2(DevicePointer* at, std::size_t bytes) {
  if (t_pushed == 0) return kInvalidContext;
  void* const memory = std::malloc(bytes);
  if (memory == nullptr) return kOutOfMemory;
  std::memset(memory, kPoison, bytes);
  *at = reinterpret_cast<std::uintptr_t>(memory) + kFarAway;
  const std::lock_guard lock(g_mutex);
  g_blocks[*at] = {.bytes = bytes, .pooled = g_next_is_pooled};
  g_next_is_pooled = !g_next_is_pooled;
  return kSuccess;
}

int cuMemFree_v2(DevicePointer at) {
  const std::lock_guard lock(g_mutex);
  if (g_blocks.erase(at) == 0) return kInvalidValue;
  std::free(OnHeap(at));
  return kSuccess;
}

int cuMemHostAlloc(void** memory, std::size_t bytes, unsigned) {
  if (t_pushed == 0) return kInvalidContext;
  *memory = std::malloc(bytes);
  return *memory == nullptr ? kOutOfMemory : kSuccess;
}

int cuMemFreeHost(void* memory) {
  if (t_pushed == 0) return kInvalidContext;
  std::free(memory);
  return kSuccess;
}

int cuMemcpyDtoH_v2(void* to, DevicePointer from, std::size_t bytes) {
  return Try(from, bytes, [&] { std::memcpy(to, OnHeap(from), bytes); });
}

int cuMemcpyHtoD_v2(DevicePointer to, const void* from, std::size_t bytes) {
  return Try(to, bytes, [&] { std::memcpy(OnHeap(to), from, bytes); });
}

int cuStreamCreate(void** stream, unsigned) {
  *stream = nullptr;
  return kSuccess;
}

int cuMemcpyHtoDAsync_v2(DevicePointer to, const void* from, std::size_t bytes, void*) {
  return Try(to, bytes, [=] { g_queued.push_back([=] { std::memcpy(OnHeap(to), from, bytes); }); });
}

}  // extern "C"
