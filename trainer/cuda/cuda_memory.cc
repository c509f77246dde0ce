#include "trainer/cuda/cuda_memory.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <string_view>
#include <utility>

#include "base/format.h"

namespace pliant {
namespace {

// Constants of cuda.h.
constexpr int kAttributeContext = 1;
constexpr int kAttributeMemoryType = 2;
constexpr int kAttributeDevice = 9;
constexpr std::uint32_t kMemoryTypeDevice = 2;

// CUDA_ERROR_DEVICE_UNAVAILABLE, _ECC_UNCORRECTABLE, _NVLINK_UNCORRECTABLE. They stay, in each call
// of a context. An illegal address or a failed launch may be the program's own fault.
constexpr std::array kBroken = {46, 214, 220};

// The ordinal of the GPU that has this memory.
Result<int> OrdinalOf(const CudaDriver& driver, const void* device) {
  const CudaPointer pointer = CudaAddress(device);
  std::uint32_t type = 0;
  const int known = driver.pointer_get_attribute(&type, kAttributeMemoryType, pointer);
  if (known == kCudaInvalidValue || (known == kCudaSuccess && type != kMemoryTypeDevice)) {
    return Invalid(Format("{} is no device memory", device));
  }
  RETURN_IF_ERROR(driver.Check(known, "the kind of a pointer"));
  int ordinal = 0;
  RETURN_IF_ERROR(driver.Check(driver.pointer_get_attribute(&ordinal, kAttributeDevice, pointer),
                               "the device of a pointer"));
  return ordinal;
}

}  // namespace

Result<std::shared_ptr<CudaMemory>> CudaMemory::Of(std::shared_ptr<const CudaDriver> driver,
                                                   const void* device) {
  ASSIGN_OR_RETURN(const int ordinal, OrdinalOf(*driver, device));
  int handle = 0;
  CudaContext context = nullptr;
  RETURN_IF_ERROR(driver->Check(driver->device_get(&handle, ordinal), "cuDeviceGet"));
  // Never released: the framework keeps the context as long as the process lives, too.
  RETURN_IF_ERROR(
      driver->Check(driver->primary_context_retain(&context, handle), "cuDevicePrimaryCtxRetain"));
  auto memory = std::shared_ptr<CudaMemory>(new CudaMemory(std::move(driver), ordinal, context));
  RETURN_IF_ERROR(memory->CheckOwned(device));
  RETURN_IF_ERROR(memory->MakeStream());
  return memory;
}

CudaMemory::CudaMemory(std::shared_ptr<const CudaDriver> driver, int ordinal, CudaContext context)
    : driver_(std::move(driver)), ordinal_(ordinal), context_(context) {}

CudaMemory::~CudaMemory() {
  const CurrentCudaContext current(*driver_, context_);
  if (marked_ != nullptr) driver_->event_destroy(marked_);
  if (moved_ != nullptr) driver_->event_destroy(moved_);
  if (stream_ != nullptr) driver_->stream_destroy(stream_);
}

Status CudaMemory::MakeStream() {
  const CurrentCudaContext current(*driver_, context_);
  RETURN_IF_ERROR(current.status());
  RETURN_IF_ERROR(
      driver_->Check(driver_->stream_create(&stream_, kCudaNonBlockingStream), "a stream"));
  RETURN_IF_ERROR(
      driver_->Check(driver_->event_create(&marked_, kCudaEventWithoutTime), "an event"));
  return driver_->Check(driver_->event_create(&moved_, kCudaEventWithoutTime), "an event");
}

Status CudaMemory::CheckOwned(const void* device) const {
  ASSIGN_OR_RETURN(const int ordinal, OrdinalOf(*driver_, device));
  if (ordinal != ordinal_) {
    return Invalid(
        Format("{} is memory of GPU {}, but other tensors are on GPU {}: all tensors of "
               "a learner are on one GPU",
               device, ordinal, ordinal_));
  }
  CudaContext context = nullptr;
  const int owned =
      driver_->pointer_get_attribute(&context, kAttributeContext, CudaAddress(device));
  // Memory of a pool, and mapped memory, belongs to a device, not to a context.
  if (owned == kCudaInvalidValue || context == nullptr) return {};
  RETURN_IF_ERROR(driver_->Check(owned, "the context of a pointer"));
  if (context == context_) return {};
  return Invalid(Format("{} is memory of a context that is not the GPU's primary one", device));
}

Status CudaMemory::UseStream(CudaStream stream) {
  const CurrentCudaContext current(*driver_, context_);
  RETURN_IF_ERROR(current.status());
  if (program_stream_ && *program_stream_ != stream) {
    RETURN_IF_ERROR(
        driver_->Check(driver_->event_record(moved_, *program_stream_), "cuEventRecord"));
    RETURN_IF_ERROR(
        driver_->Check(driver_->stream_wait_event(stream, moved_, 0), "cuStreamWaitEvent"));
  }
  program_stream_ = stream;
  return {};
}

Result<CudaStream> CudaMemory::program_stream() const {
  if (program_stream_) return *program_stream_;
  return Fail(ErrorCode::kConflict, "the program has not named its stream: see pliant_use_stream");
}

bool CudaMemory::broken() const {
  const CurrentCudaContext current(*driver_, context_);
  return std::ranges::contains(kBroken, driver_->event_query(marked_));
}

Result<std::shared_ptr<std::byte>> CudaMemory::Allocate(std::size_t bytes) {
  const CurrentCudaContext current(*driver_, context_);
  RETURN_IF_ERROR(current.status());
  CudaPointer memory = 0;
  RETURN_IF_ERROR(driver_->Check(driver_->alloc(&memory, bytes),
                                 Format("{} bytes of GPU {}'s memory", bytes, ordinal_)));
  return std::shared_ptr<std::byte>(
      reinterpret_cast<std::byte*>(memory),
      [driver = driver_, context = context_](const std::byte* unused) {
        // At the end of the process the driver may already be gone.
        const CurrentCudaContext again(*driver, context);
        if (again.status()) driver->free(CudaAddress(unused));
      });
}

Result<std::shared_ptr<std::byte>> CudaMemory::AllocateHost(std::size_t bytes) {
  const CurrentCudaContext current(*driver_, context_);
  RETURN_IF_ERROR(current.status());
  void* memory = nullptr;
  RETURN_IF_ERROR(driver_->Check(driver_->host_alloc(&memory, bytes, kCudaHostPortable),
                                 Format("{} bytes of pinned host memory", bytes)));
  return std::shared_ptr<std::byte>(static_cast<std::byte*>(memory),
                                    [driver = driver_, context = context_](std::byte* unused) {
                                      const CurrentCudaContext again(*driver, context);
                                      if (again.status()) driver->host_free(unused);
                                    });
}

Status CudaMemory::Mark() {
  const CurrentCudaContext current(*driver_, context_);
  RETURN_IF_ERROR(current.status());
  if (!program_stream_) {
    return driver_->Check(driver_->context_synchronize(), "earlier work on the device");
  }
  return driver_->Check(driver_->event_record(marked_, *program_stream_), "cuEventRecord");
}

template <typename Queue>
Status CudaMemory::ForProgram(const Queue& queue) {
  const CurrentCudaContext current(*driver_, context_);
  RETURN_IF_ERROR(current.status());
  if (program_stream_) return queue(*program_stream_);
  RETURN_IF_ERROR(driver_->Check(driver_->context_synchronize(), "earlier work on the device"));
  RETURN_IF_ERROR(queue(stream_));
  return driver_->Check(driver_->stream_synchronize(stream_), "a copy on the device");
}

Status CudaMemory::Write(std::span<const ToDevice> copies) {
  return ForProgram([&](CudaStream stream) -> Status {
    for (const ToDevice& copy : copies) {
      if (copy.host.empty()) continue;
      RETURN_IF_ERROR(
          driver_->Check(driver_->copy_to_device(CudaAddress(copy.device), copy.host.data(),
                                                 copy.host.size(), stream),
                         "a copy to the device"));
    }
    // Pinned memory is only read when the copy runs.
    return driver_->Check(driver_->stream_synchronize(stream), "a copy to the device");
  });
}

Status CudaMemory::Copy(std::span<const Within> copies) {
  return ForProgram([&](CudaStream stream) -> Status {
    for (const Within& copy : copies) {
      if (copy.bytes == 0) continue;
      RETURN_IF_ERROR(driver_->Check(
          driver_->copy_within(CudaAddress(copy.to), CudaAddress(copy.from), copy.bytes, stream),
          "a copy within the device"));
    }
    return {};
  });
}

Status CudaMemory::Read(std::span<const ToHost> copies) {
  const CurrentCudaContext current(*driver_, context_);
  RETURN_IF_ERROR(current.status());
  // An event that was never recorded is no wait.
  RETURN_IF_ERROR(
      driver_->Check(driver_->stream_wait_event(stream_, marked_, 0), "cuStreamWaitEvent"));
  for (const ToHost& copy : copies) {
    if (copy.host.empty()) continue;
    RETURN_IF_ERROR(driver_->Check(driver_->copy_to_host(copy.host.data(), CudaAddress(copy.device),
                                                         copy.host.size(), stream_),
                                   "a copy to the host"));
  }
  return driver_->Check(driver_->stream_synchronize(stream_), "a copy to the host");
}

}  // namespace pliant
