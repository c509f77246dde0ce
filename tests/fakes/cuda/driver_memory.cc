// Memory, copies, and memory that processes share.

#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/fakes/cuda/cuda_api.h"
#include "tests/fakes/cuda/driver_state.h"

namespace pliant::fake_cuda {

Allocation::~Allocation() { ::close(fd); }

namespace {

constexpr std::size_t kGranularity = std::size_t{2} << 20U;
constexpr std::size_t kPage = 4096;
constexpr int kFileDescriptor = 1;

std::uint64_t AddressOf(const void* pointer) { return reinterpret_cast<std::uintptr_t>(pointer); }

bool IsDevices(const MemoryMap& memory, std::uint64_t address, std::size_t bytes) {
  const auto found = memory.Find(address);
  return memory.OnHost(address, bytes) != nullptr && found->second.kind != Kind::kPinned;
}

bool IsPinned(const MemoryMap& memory, std::uint64_t address, std::size_t bytes) {
  const auto found = memory.Find(address);
  return memory.OnHost(address, bytes) != nullptr && found->second.kind == Kind::kPinned;
}

// One side of a copy. Pageable host memory is no business of the device: `address` is then the
// host's own.
struct Side {
  std::uint64_t address = 0;
  bool pageable = false;

  std::byte* OnHost(const MemoryMap& memory, std::size_t bytes) const {
    return pageable ? reinterpret_cast<std::byte*>(address) : memory.OnHost(address, bytes);
  }
};

Side HostSide(const MemoryMap& memory, const void* pointer, std::size_t bytes) {
  return {.address = AddressOf(pointer), .pageable = !IsPinned(memory, AddressOf(pointer), bytes)};
}

int Copy(Call& call, const char* name, StreamId stream, Side to, Side from, std::size_t bytes,
         bool wait) {
  for (const Side& side : {to, from})
    if (!side.pageable && call.memory().OnHost(side.address, bytes) == nullptr)
      return kInvalidValue;
  std::vector<Access> accesses;
  if (!from.pageable) accesses.push_back({.begin = from.address, .bytes = bytes});
  if (!to.pageable) accesses.push_back({.begin = to.address, .bytes = bytes, .writes = true});
  // The driver reads pageable memory before it returns.
  auto taken = std::make_shared<std::vector<std::byte>>();
  if (from.pageable) {
    const auto* const source = reinterpret_cast<const std::byte*>(from.address);
    taken->assign(source, source + bytes);
  }
  State& state = call.state();
  const Point copy = call.timeline().Enqueue(
      stream, name, std::move(accesses), [&state, to, from, taken, bytes]() -> int {
        if (bytes == 0) return kSuccess;
        std::byte* const target = to.OnHost(state.memory, bytes);
        const std::byte* const source =
            from.pageable ? taken->data() : from.OnHost(state.memory, bytes);
        if (target == nullptr || source == nullptr) return kIllegalAddress;
        std::memmove(target, source, bytes);
        return kSuccess;
      });
  // A copy to pageable memory returns when it is complete.
  if (!wait && !to.pageable) return kSuccess;
  const int error = call.WaitUntil([&] { return call.timeline().Ended(copy); });
  call.timeline().HostSawStream(stream);
  return error;
}

int Free(Call& call, std::uint64_t begin, std::set<Kind> kinds) {
  const auto found = call.memory().Find(begin);
  if (!found || found->first != begin || !kinds.contains(found->second.kind)) return kInvalidValue;
  if (call.timeline().IsAwaited(begin, found->second.bytes))
    call.timeline().Violation("memory was freed that a queued operation touches");
  call.memory().Free(begin, std::move(kinds));
  call.timeline().Forget(begin, found->second.bytes);
  return kSuccess;
}

}  // namespace
}  // namespace pliant::fake_cuda

using namespace pliant::fake_cuda;

extern "C" {

int cuPointerGetAttribute(void* data, int attribute, CUdeviceptr at) {
  Call call;
  const auto found = call.memory().Find(at);
  if (!found) return kInvalidValue;
  const auto& [begin, block] = *found;
  switch (attribute) {
    case 1:  // context: memory of a pool, and mapped memory, has none
      *static_cast<void**>(data) =
          block.kind == Kind::kDevice || block.kind == Kind::kPinned
              ? Handle(kContexts, static_cast<std::uintptr_t>(block.device))
              : nullptr;
      return kSuccess;
    case 2:  // type: host or device
      *static_cast<std::uint32_t*>(data) = block.kind == Kind::kPinned ? 1 : 2;
      return kSuccess;
    case 9:
      *static_cast<int*>(data) = block.device;
      return kSuccess;
    case 11:
      *static_cast<CUdeviceptr*>(data) = begin;
      return kSuccess;
    case 12:
      *static_cast<std::size_t*>(data) = block.bytes;
      return kSuccess;
    default:
      return kInvalidValue;
  }
}

// Every other block belongs to a memory pool, as those of PyTorch may.
int cuMemAlloc_v2(CUdeviceptr* at, std::size_t bytes) {
  return InContext([&](Call& call) -> int {
    ++call.state().calls["cuMemAlloc"];
    if (bytes == 0) return kInvalidValue;
    bool& pooled = call.state().next_is_pooled;
    const auto begin =
        call.memory().Allocate(bytes, pooled ? Kind::kPooled : Kind::kDevice, call.device());
    if (!begin) return kOutOfMemory;
    pooled = !pooled;
    *at = *begin;
    return kSuccess;
  });
}

int cuMemFree_v2(CUdeviceptr at) {
  if (at == 0) return kSuccess;
  return InContext([&](Call& call) { return Free(call, at, {Kind::kDevice, Kind::kPooled}); });
}

int cuMemHostAlloc(void** memory, std::size_t bytes, unsigned) {
  return InContext([&](Call& call) -> int {
    ++call.state().calls["cuMemHostAlloc"];
    std::shared_ptr<std::byte> owned(
        static_cast<std::byte*>(std::aligned_alloc(kPage, (bytes + kPage - 1) / kPage * kPage)),
        std::free);
    if (owned == nullptr) return kOutOfMemory;
    *memory = owned.get();
    call.memory().Pin(owned.get(), bytes, owned);
    return kSuccess;
  });
}

int cuMemFreeHost(void* memory) {
  return InContext([&](Call& call) { return Free(call, AddressOf(memory), {Kind::kPinned}); });
}

int cuMemHostRegister_v2(void* memory, std::size_t bytes, unsigned) {
  return InContext([&](Call& call) -> int {
    ++call.state().calls["cuMemHostRegister"];
    if (call.memory().Find(AddressOf(memory))) return kAlreadyRegistered;
    call.memory().Pin(static_cast<std::byte*>(memory), bytes, nullptr);
    return kSuccess;
  });
}

int cuMemHostUnregister(void* memory) {
  return InContext([&](Call& call) -> int {
    const int freed = Free(call, AddressOf(memory), {Kind::kPinned});
    return freed == kInvalidValue ? kNotRegistered : freed;
  });
}

int cuMemcpyDtoH_v2(void* to, CUdeviceptr from, std::size_t bytes) {
  return InContext([&](Call& call) {
    return Copy(call, "a copy to the host", *call.StreamOf(nullptr),
                HostSide(call.memory(), to, bytes), {.address = from}, bytes, true);
  });
}

int cuMemcpyHtoD_v2(CUdeviceptr to, const void* from, std::size_t bytes) {
  return InContext([&](Call& call) {
    return Copy(call, "a copy to the device", *call.StreamOf(nullptr), {.address = to},
                HostSide(call.memory(), from, bytes), bytes, true);
  });
}

int cuMemcpyDtoHAsync_v2(void* to, CUdeviceptr from, std::size_t bytes, void* stream) {
  return InContext([&](Call& call) -> int {
    ++call.state().calls["cuMemcpyDtoHAsync"];
    const auto id = call.StreamOf(stream);
    if (!id) return kInvalidHandle;
    return Copy(call, "a copy to the host", *id, HostSide(call.memory(), to, bytes),
                {.address = from}, bytes, false);
  });
}

int cuMemcpyHtoDAsync_v2(CUdeviceptr to, const void* from, std::size_t bytes, void* stream) {
  return InContext([&](Call& call) -> int {
    ++call.state().calls["cuMemcpyHtoDAsync"];
    const auto id = call.StreamOf(stream);
    if (!id) return kInvalidHandle;
    return Copy(call, "a copy to the device", *id, {.address = to},
                HostSide(call.memory(), from, bytes), bytes, false);
  });
}

int cuMemcpyDtoDAsync_v2(CUdeviceptr to, CUdeviceptr from, std::size_t bytes, void* stream) {
  return InContext([&](Call& call) -> int {
    ++call.state().calls["cuMemcpyDtoDAsync"];
    const auto id = call.StreamOf(stream);
    if (!id) return kInvalidHandle;
    return Copy(call, "a copy within the device", *id, {.address = to}, {.address = from}, bytes,
                false);
  });
}

int cuMemsetD8Async(CUdeviceptr to, unsigned char value, std::size_t bytes, void* stream) {
  return InContext([&](Call& call) -> int {
    ++call.state().calls["cuMemsetD8Async"];
    const auto id = call.StreamOf(stream);
    if (!id) return kInvalidHandle;
    if (!IsDevices(call.memory(), to, bytes)) return kInvalidValue;
    State& state = call.state();
    call.timeline().Enqueue(*id, "a fill", {{.begin = to, .bytes = bytes, .writes = true}},
                            [&state, to, value, bytes]() -> int {
                              std::byte* const target = state.memory.OnHost(to, bytes);
                              if (target == nullptr) return kIllegalAddress;
                              std::memset(target, value, bytes);
                              return kSuccess;
                            });
    return kSuccess;
  });
}

int cuMemGetAllocationGranularity(std::size_t* bytes, const CUmemAllocationProp*, int) {
  *bytes = kGranularity;
  return kSuccess;
}

int cuMemCreate(std::uint64_t* handle, std::size_t bytes, const CUmemAllocationProp* what,
                unsigned long long) {
  Call call;
  if (bytes == 0 || bytes % kGranularity != 0 || what->location.id >= call.state().devices)
    return kInvalidValue;
  const int fd = ::memfd_create("device memory", MFD_CLOEXEC);
  if (fd < 0 || ::ftruncate(fd, static_cast<off_t>(bytes)) != 0) return kOutOfMemory;
  *handle = ++call.state().last_allocation;
  call.state().allocations[*handle] = std::make_shared<Allocation>(fd, bytes, what->location.id);
  return kSuccess;
}

// Mappings keep the memory.
int cuMemRelease(std::uint64_t handle) {
  return Call().state().allocations.erase(handle) == 0 ? kInvalidValue : kSuccess;
}

int cuMemAddressReserve(CUdeviceptr* at, std::size_t bytes, std::size_t, CUdeviceptr,
                        unsigned long long) {
  if (bytes == 0 || bytes % kGranularity != 0) return kInvalidValue;
  *at = Call().memory().Reserve(bytes, 0);
  return kSuccess;
}

int cuMemAddressFree(CUdeviceptr at, std::size_t bytes) {
  return Call().memory().FreeReserved(at, bytes) ? kSuccess : kInvalidValue;
}

int cuMemMap(CUdeviceptr at, std::size_t bytes, std::size_t offset, std::uint64_t handle,
             unsigned long long) {
  Call call;
  const auto found = call.state().allocations.find(handle);
  if (found == call.state().allocations.end()) return kInvalidValue;
  const auto& allocation = found->second;
  if (offset != 0 || bytes > allocation->bytes || bytes % kGranularity != 0) return kInvalidValue;
  void* const mapped =
      ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, allocation->fd, 0);
  if (mapped == MAP_FAILED) return kOutOfMemory;
  std::shared_ptr<std::byte> memory(
      static_cast<std::byte*>(mapped),
      [bytes, allocation](std::byte* unused) { ::munmap(unused, bytes); });
  return call.memory().Map(at, bytes, std::move(memory), allocation->device) ? kSuccess
                                                                             : kInvalidValue;
}

int cuMemUnmap(CUdeviceptr at, std::size_t bytes) {
  Call call;
  if (call.timeline().IsAwaited(at, bytes))
    call.timeline().Violation("memory was unmapped that a queued operation touches");
  if (!call.memory().Unmap(at, bytes)) return kInvalidValue;
  call.timeline().Forget(at, bytes);
  return kSuccess;
}

int cuMemSetAccess(CUdeviceptr at, std::size_t bytes, const CUmemAccessDesc*, std::size_t count) {
  return count == 1 && Call().memory().SetAccess(at, bytes) ? kSuccess : kInvalidValue;
}

int cuMemExportToShareableHandle(void* descriptor, std::uint64_t handle, int type,
                                 unsigned long long) {
  Call call;
  const auto found = call.state().allocations.find(handle);
  if (found == call.state().allocations.end() || type != kFileDescriptor) return kInvalidValue;
  const int fd = ::fcntl(found->second->fd, F_DUPFD_CLOEXEC, 0);
  if (fd < 0) return kInvalidValue;
  *static_cast<int*>(descriptor) = fd;
  return kSuccess;
}

int cuMemImportFromShareableHandle(std::uint64_t* handle, void* descriptor, int type) {
  Call call;
  if (type != kFileDescriptor) return kInvalidValue;
  if (call.state().isolated) return kInvalidDevice;
  const int fd =
      ::fcntl(static_cast<int>(reinterpret_cast<std::uintptr_t>(descriptor)), F_DUPFD_CLOEXEC, 0);
  struct stat about{};
  if (fd < 0 || ::fstat(fd, &about) != 0) return kInvalidValue;
  *handle = ++call.state().last_allocation;
  call.state().allocations[*handle] =
      std::make_shared<Allocation>(fd, static_cast<std::size_t>(about.st_size), 0);
  return kSuccess;
}

}  // extern "C"
